//! Tests of applying the changes in one workspace to another one, as verification does.

use proptest::prelude::*;

use super::support::{KINDS, TestRepo, changes, edit, lines, mounted_contents};
use crate::workspace::LayersKind;

#[test]
fn applying_changes_gives_the_tree_that_they_were_taken_from() {
    for script in [
        "echo more >> main.py; echo new > new.py; rm data/points.csv paper.txt; mkdir -p a/b; echo x > a/b/c",
        "rm -r pkg; echo x > pkg",
        "rm main.py; mkdir main.py; echo x > main.py/inner",
        "rm shortcut; mkdir -p shortcut/er; echo x > shortcut/er/data.bin",
        "rm -r data; mkdir data; echo x > data/other; chmod +x main.py; chmod -x run.sh",
        "mv pkg lib; echo x > pkg-x; rm run.sh",
    ] {
        for kind in KINDS {
            let place = TestRepo::with_repo();
            let (from, to) = (place.workspace("from", kind), place.workspace("to", kind));
            if edit(&from, script).is_none() {
                continue;
            }
            let found = changes(&from);
            assert_eq!(to.apply(&found, |_| false).unwrap(), [""; 0]);
            assert_eq!(mounted_contents(&to), mounted_contents(&from), "{kind:?}: {script}");
            assert_eq!(lines(&changes(&to)), lines(&found), "{kind:?}: {script}");
        }
    }
}

#[test]
fn protected_files_stay_as_they_were_and_are_named() {
    for kind in KINDS {
        let place = TestRepo::with_repo();
        let (from, to) = (place.workspace("from", kind), place.workspace("to", kind));
        if edit(&from, "echo 9,9 > data/points.csv; echo x > data/new; rm run.sh; echo more >> main.py").is_none() {
            continue;
        }
        let ignored = to.apply(&changes(&from), |path| path.starts_with("data/") || path == "run.sh").unwrap();
        assert_eq!(ignored, ["data/new", "data/points.csv", "run.sh"]);
        assert_eq!(lines(&changes(&to)), ["M main.py"]);
    }
}

#[test]
fn a_protected_file_stays_although_an_attempt_replaces_it_or_its_folder() {
    for (script, ignored) in [
        ("rm -r data; echo x > data", vec!["data", "data/points.csv"]),
        ("mv data gone; ln -s gone data", vec!["data", "data/points.csv"]),
        ("rm run.sh; mkdir run.sh; echo x > run.sh/inner", vec!["run.sh", "run.sh/inner"]),
    ] {
        for kind in KINDS {
            let place = TestRepo::with_repo();
            let (from, to) = (place.workspace("from", kind), place.workspace("to", kind));
            if edit(&from, script).is_none() {
                continue;
            }
            let left = to.apply(&changes(&from), |path| path == "data/points.csv" || path == "run.sh").unwrap();
            assert_eq!(left, ignored, "{script}");
            let Some(shown) = mounted_contents(&to) else { continue };
            assert_eq!(shown["data/points.csv"].1, b"1,2\r\n3,4\r\n");
            assert_eq!(shown["run.sh"].1, b"#!/bin/sh\necho hi\n");
        }
    }
}

#[test]
fn links_are_not_applied() {
    for kind in KINDS {
        let place = TestRepo::with_repo();
        let (from, to) = (place.workspace("from", kind), place.workspace("to", kind));
        if edit(&from, "ln -s /etc/passwd secret; rm main.py; ln -s /etc/passwd main.py").is_none() {
            continue;
        }
        to.apply(&changes(&from), |_| false).unwrap();
        assert_eq!(lines(&changes(&to)), [""; 0]);
    }
}

/// Generates random edits, each a line of shell.
fn any_edit() -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec![
        "main.py",
        "pkg",
        "pkg/__init__.py",
        "pkg/deep",
        "pkg/deep/er/data.bin",
        "data",
        "data/points.csv",
        "paper.txt",
        "shortcut",
        "run.sh",
        "new",
        "new/inner",
        "new-er",
    ]);
    let other = path.clone();
    prop_oneof![
        (path.clone(), "[a-c]{0,3}").prop_map(|(path, text)| format!("printf '{text}' > {path}")),
        (path.clone(), "[a-c]{1,3}").prop_map(|(path, text)| format!("echo {text} >> {path}")),
        path.clone().prop_map(|path| format!("rm -rf {path}")),
        path.clone().prop_map(|path| format!("mkdir {path}")),
        path.clone().prop_map(|path| format!("chmod +x {path}")),
        path.clone().prop_map(|path| format!("ln -s pkg {path}")),
        (path, other).prop_map(|(from, to)| format!("mv {from} {to}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn random_edits_give_equal_changes_for_overlay_and_copy(edits in prop::collection::vec(any_edit(), 1..12)) {
        let script = edits.iter().map(|edit| format!("{{ {edit}; }} 2>/dev/null || true")).collect::<Vec<_>>().join("\n");
        let place = TestRepo::with_repo();
        let copy = place.workspace("copy", LayersKind::Copy);
        edit(&copy, &script).unwrap();
        let found = changes(&copy);
        let overlay = place.workspace("overlay", LayersKind::Overlay);
        if edit(&overlay, &script).is_some() {
            let in_overlay = changes(&overlay);
            prop_assert_eq!(lines(&in_overlay), lines(&found));
            prop_assert_eq!(String::from_utf8(in_overlay.patch), String::from_utf8(found.patch.clone()));
        }
        for kind in KINDS {
            let fresh = place.workspace(&format!("fresh-{kind:?}"), kind);
            fresh.apply(&found, |_| false).unwrap();
            // New links are not applied, so do not compare them or the paths that they replace.
            let Some(mut shows) = mounted_contents(&fresh) else { continue };
            let mut wanted = mounted_contents(&copy).unwrap();
            for line in lines(&found).iter().filter_map(|line| line.strip_prefix("S ")) {
                shows.remove(line);
                wanted.remove(line);
            }
            prop_assert_eq!(shows, wanted, "{:?}", kind);
        }
    }
}
