//! Tests of reading an attempt's changes.

use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::support::{KINDS, TestRepo, changes, edit, files, lines, mounted_contents, overrides, sh};
use crate::workspace::{ChangeKind, ChangeLimits, Changes, FileChange, LayersKind, Workspace};

/// Runs a script in a new workspace of every kind, and checks the list of changes.
fn check(script: &str, expected: &[&str]) {
    for kind in KINDS {
        let place = TestRepo::with_repo();
        let workspace = place.workspace("w", kind);
        let Some(output) = edit(&workspace, script) else { continue };
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(lines(&changes(&workspace)), expected, "{kind:?}: {script}");
        workspace.remove().unwrap();
        assert!(!place.dir.path().join("w").exists());
    }
}

#[test]
fn a_fresh_workspace_shows_the_masked_tree_and_no_changes() {
    for kind in KINDS {
        let place = TestRepo::with_repo();
        let workspace = place.workspace("w", kind);
        assert_eq!(lines(&changes(&workspace)), [""; 0]);
        assert!(changes(&workspace).patch.is_empty());
        let Some(shown) = mounted_contents(&workspace) else { continue };
        let mut expected = files(&place.repo);
        for (path, bytes) in overrides() {
            expected.insert(path.to_str().unwrap().to_owned(), (false, bytes));
        }
        assert_eq!(shown, expected);
    }
}

#[test]
fn files_that_were_added_changed_or_removed_are_listed() {
    check(
        "echo more >> main.py; echo new > new.py; rm data/points.csv; mkdir -p a/b; echo x > a/b/c",
        &["A a/b/c", "R data/points.csv", "M main.py", "A new.py"],
    );
}

#[test]
fn changes_to_masked_and_supplied_files_are_relative_to_the_attempts_initial_files() {
    check("printf 'def f():\\n    return 1\\n' > pkg/__init__.py", &["M pkg/__init__.py"]);
    check("rm paper.txt pkg/__init__.py", &["R paper.txt", "R pkg/__init__.py"]);
    check("rm -r pkg", &["R pkg/__init__.py", "R pkg/deep/er/data.bin", "R pkg/empty.py"]);
    check("rm paper.txt; echo other > paper.txt", &["M paper.txt"]);
}

#[test]
fn touching_moving_back_or_rewriting_the_same_bytes_is_no_change() {
    check("touch main.py pkg; cp main.py x; cat x > main.py; rm x; mv run.sh y; mv y run.sh; mkdir empty", &[]);
    check("rm -r pkg/deep; mkdir -p pkg/deep/er; printf '\\000\\001\\002\\377' > pkg/deep/er/data.bin", &[]);
}

#[test]
fn of_a_files_mode_only_the_permission_to_execute_counts_as_a_change() {
    check("chmod 600 main.py; chmod 700 run.sh pkg", &[]);
    check("chmod +x main.py; chmod 644 run.sh", &["M main.py", "M run.sh"]);
}

#[test]
fn replacing_a_file_by_a_folder_or_a_folder_by_a_file_removes_and_adds_files() {
    check("rm main.py; mkdir main.py; echo x > main.py/inner", &["R main.py", "A main.py/inner"]);
    check("rm -r pkg; echo x > pkg", &["A pkg", "R pkg/__init__.py", "R pkg/deep/er/data.bin", "R pkg/empty.py"]);
    check("rm main.py; mkdir main.py; rmdir main.py; printf 'import pkg\\nprint(pkg.f())\\n' > main.py", &[]);
    check("rm -r data; mkdir data; echo x > data/other", &["A data/other", "R data/points.csv"]);
}

#[test]
fn a_renamed_folder_removes_and_adds_its_files() {
    check("mv data points", &["R data/points.csv", "A points/points.csv"]);
}

#[test]
fn links_and_special_files_are_named_but_never_followed_or_opened() {
    check(
        "ln -s /etc/passwd secret; ln -s . loop; ln -s loop2 loop2; mkfifo pipe; rm main.py; ln -s /etc/hostname main.py",
        &["S loop", "S loop2", "S main.py", "S pipe", "S secret"],
    );
    check("rm -r data; ln -s /etc data", &["S data", "R data/points.csv"]);
    check("rm shortcut", &["R shortcut"]);
    check("rm shortcut; ln -s pkg/deep shortcut", &[]);
    check(
        "rm shortcut; mkdir -p shortcut/er; echo x > shortcut/er/data.bin",
        &["R shortcut", "A shortcut/er/data.bin"],
    );
    check("rm shortcut; echo plain > shortcut", &["A shortcut"]);
}

#[test]
fn compiled_python_and_caches_are_not_changes() {
    check(
        "mkdir pkg/__pycache__ .pytest_cache .git; echo x > pkg/__pycache__/a.pyc; echo x > .git/HEAD; echo x > b.pyc",
        &[],
    );
}

#[test]
fn names_that_are_not_utf8_and_trees_that_are_too_deep_are_skipped() {
    check(
        r#"touch "$(printf 'bad\377name')"; p=.; for i in $(seq 120); do p=$p/d; done; mkdir -p $p; touch $p/f"#,
        &["S bad\u{fffd}name", &format!("S {}d", "d/".repeat(100))],
    );
}

/// Returns a script that makes a path too long for any system call, one folder at a time, and then runs `last`.
fn deep(last: &str) -> String {
    let name = "n".repeat(250);
    format!("i=0; while [ $i -lt 17 ]; do mkdir {name}; cd -P {name}; i=$((i+1)); done; {last}")
}

#[test]
fn files_that_an_attempt_creates_at_overlong_paths_are_skipped_without_an_error() {
    for kind in KINDS {
        let place = TestRepo::with_repo();
        let workspace = place.workspace("w", kind);
        let Some(output) = edit(&workspace, &deep("echo x > file")) else { continue };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let changes = changes(&workspace);
        let named = lines(&changes);
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(named[0].starts_with("S nnn") && named[0].len() < 1300, "{named:?}");
        let fresh = place.workspace("fresh", kind);
        assert_eq!(fresh.apply(&changes, |_| false).unwrap(), [""; 0]);
        workspace.remove().unwrap();
    }
}

#[test]
fn a_change_at_a_path_that_is_too_long_is_ignored_and_named() {
    let long = vec!["n".repeat(250); 17].join("/");
    let change = |path: &str| FileChange {
        path: path.to_owned(),
        kind: ChangeKind::Added,
        bytes: b"x".to_vec(),
        executable: false,
    };
    let name = "n".repeat(256);
    let changes = Changes { files: vec![change(&long), change(&name), change("short")], ..Changes::default() };
    let place = TestRepo::with_repo();
    let fresh = place.workspace("fresh", LayersKind::Copy);
    assert_eq!(fresh.apply(&changes, |_| false).unwrap(), [long, name]);
    assert_eq!(lines(&super::support::changes(&fresh)), ["A short"]);
}

#[test]
fn overlay_attributes_set_by_an_attempt_are_ignored() {
    let set = "import os\nfor path, name in [('new', 'redirect'), ('data', 'opaque'), ('nothing', 'whiteout')]:\n    \
               try: os.setxattr(path, 'user.overlay.' + name, b'y')\n    except OSError: pass";
    check(&format!("mkdir new; echo x > new/file; : > nothing; python3 -c \"{set}\""), &["A new/file", "A nothing"]);
}

#[test]
fn new_files_are_listed_until_their_paths_exceed_a_limit_in_bytes() {
    let place = TestRepo::with_repo();
    let workspace = place.workspace("w", LayersKind::Copy);
    edit(&workspace, "echo > one; echo > three; echo > two; echo more >> main.py").unwrap();
    let changes = workspace.changes(&ChangeLimits { names: 8, ..ChangeLimits::default() }).unwrap();
    assert_eq!(lines(&changes), ["M main.py", "A one", "A three"]);
    assert_eq!(changes.unlisted, 1);
}

#[test]
fn files_and_folders_without_permissions_are_read() {
    check(
        "mkdir shut; echo x > shut/inner; chmod 000 shut/inner shut; echo y >> main.py; chmod 000 main.py",
        &["M main.py", "A shut/inner"],
    );
}

#[test]
fn files_over_a_size_limit_are_skipped_and_surplus_files_are_only_counted() {
    let place = TestRepo::with_repo();
    let workspace = place.workspace("w", LayersKind::Copy);
    edit(&workspace, "head -c 2000 /dev/zero > big; head -c 900 /dev/zero > c; head -c 900 /dev/zero > d; for i in 1 2 3; do echo > z$i; done")
        .unwrap();
    edit(&workspace, "rm main.py; truncate -s 1T run.sh").unwrap();
    let limits = ChangeLimits { file: 1000, total: 1000, files: 4, ..ChangeLimits::default() };
    let found = workspace.changes(&limits).unwrap();
    assert_eq!(lines(&found), ["S big", "A c", "S d", "R main.py", "S run.sh"]);
    assert_eq!(found.unlisted, 3);
}

#[test]
fn new_files_do_not_use_up_the_size_limit_of_changed_files() {
    let place = TestRepo::with_repo();
    let workspace = place.workspace("w", LayersKind::Copy);
    edit(&workspace, "for file in a b main.py run.sh; do head -c 900 /dev/zero > $file; done").unwrap();
    let found = workspace.changes(&ChangeLimits { total: 1000, ..ChangeLimits::default() }).unwrap();
    assert_eq!(lines(&found), ["A a", "S b", "M main.py", "S run.sh"]);
}

#[test]
fn a_workspace_with_deep_and_inaccessible_folders_and_many_files_is_removed() {
    let place = TestRepo::with_repo();
    let workspace = place.workspace("w", LayersKind::Copy);
    let dir = place.dir.path().join("w");
    let outside = place.dir.path().join("outside");
    std::fs::write(&outside, "stays").unwrap();
    sh(
        &dir.join("tree"),
        "mkdir many; cd many; seq 3000 | xargs touch; ln -s ../../../outside link; ln -s ../../../repo tree",
    );
    // The script makes a path that is longer than the kernel accepts in one call.
    let script = "import os\nfor i in range(700):\n    os.mkdir('deeper'); os.chdir('deeper')\nopen('f', 'w').close()\nos.chmod('.', 0)";
    std::fs::write(place.dir.path().join("deep.py"), script).unwrap();
    sh(&dir.join("tree"), "python3 ../../deep.py; chmod 000 many");
    assert_eq!(lines(&changes(&workspace)).len(), 3003);
    workspace.remove().unwrap();
    assert!(!dir.exists());
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "stays");
    assert!(place.repo.join("main.py").exists());
}

#[test]
#[ignore = "needs root to become an ordinary user"]
fn an_ordinary_user_reads_and_removes_files_without_permissions() {
    // Run three tests of this folder as another user, which requires a separate process.
    let place = TestRepo::with_repo();
    sh(place.dir.path(), "chown -R 65534:65534 .");
    let test = std::env::current_exe().unwrap();
    let output = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(test)
        .args(["--exact", "workspace::tests::changes::files_and_folders_without_permissions_are_read"])
        .args(["workspace::tests::changes::a_workspace_with_deep_and_inaccessible_folders_and_many_files_is_removed"])
        .args(["workspace::tests::apply::applying_changes_gives_the_tree_that_they_were_taken_from", "--nocapture"])
        .env("TMPDIR", place.dir.path())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("3 passed"), "{text}");
            print!("{text}");
        }
        Ok(output) if output.status.code() == Some(101) => {
            panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        }
        other => panic!("no process can be started as another user: {other:?}"),
    }
}

/// Applies the patch to the original tree with git, and compares the result with the changed tree.
fn git_reproduces(script: &str) {
    let place = TestRepo::with_repo();
    let workspace = place.workspace("w", LayersKind::Copy);
    let given = place.workspace("given", LayersKind::Copy);
    let given_tree = place.dir.path().join("given/tree");
    sh(&given_tree, "git init -q .");
    edit(&workspace, script).unwrap();
    let found = changes(&workspace);
    let patch = place.dir.path().join("p.patch");
    std::fs::write(&patch, &found.patch).unwrap();
    sh(&given_tree, "git apply --whitespace=nowarn ../../p.patch; rm -r .git");
    assert_eq!(
        files(&given_tree),
        files(&place.dir.path().join("w/tree")),
        "{}",
        String::from_utf8_lossy(&found.patch)
    );
    given.remove().unwrap();
}

#[test]
fn git_applies_the_patch_and_gets_the_same_tree() {
    git_reproduces("echo more >> main.py; echo new > new.py; rm paper.txt");
    git_reproduces(
        "printf '3,4\\r\\n5,6' > data/points.csv; printf 'a\\rb\\n' > cr; printf 'last line\\n' > 'no newline'",
    );
    git_reproduces("printf 'last lime' > 'no newline'; : > empty; : > main.py; rm pkg/empty.py");
    git_reproduces("chmod +x main.py; chmod -x run.sh; echo x >> run.sh");
    git_reproduces(
        r#"echo x > 'a b'; echo y > 'q"uo\te'; echo z > 'naïve 文'; echo t > "$(printf 'tab\there')"; rm 'no newline'"#,
    );
    git_reproduces("rm main.py; mkdir main.py; echo x > main.py/inner");
    git_reproduces("rm shortcut; echo plain > shortcut");
    git_reproduces("seq 1 500 > main.py; seq 1 3 > pkg/empty.py");
}

#[test]
fn hunks_far_apart_and_binary_files_are_written_as_git_writes_them() {
    let place = TestRepo::new();
    let text: String = (1..=30).flat_map(|line| ["line ".to_owned(), line.to_string(), "\n".to_owned()]).collect();
    place.file("long.txt", text.as_bytes());
    let workspace = place.workspace_with("w", LayersKind::Copy, &[]);
    edit(
        &workspace,
        "sed -i -e 's/line 2$/two/' -e '/line 25$/d' long.txt; printf 'a\\000b' > 'bin ary'; printf '\\377' > latin",
    )
    .unwrap();
    insta::assert_snapshot!(String::from_utf8(changes(&workspace).patch).unwrap());
}

#[test]
fn a_hostile_file_cannot_delay_the_diff() {
    let place = TestRepo::new();
    let text = |factor: u32, modulus: u32| -> String {
        (0..150_000_u32).flat_map(|line| [(line.wrapping_mul(factor) % modulus).to_string(), "\n".to_owned()]).collect()
    };
    let (old, new) = (text(2_654_435_761, 977), text(40_503, 983));
    place.file("f", old.as_bytes());
    let workspace = place.workspace_with("w", LayersKind::Copy, &[]);
    std::fs::write(place.dir.path().join("w/tree/f"), new).unwrap();
    let start = Instant::now();
    assert_eq!(changes(&workspace).files[0].kind, ChangeKind::Modified);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn a_workspace_refuses_supplied_files_whose_paths_leave_the_tree_or_name_a_folder() {
    let place = TestRepo::with_repo();
    for path in ["../out", "/etc/x", "pkg", "shortcut", "shortcut/er/data.bin", "main.py/x", "a/../../b", ""] {
        let overrides = [(Path::new(path).to_owned(), Vec::new())];
        let dir = TempDir::new().unwrap();
        let made = Workspace::create(&place.snapshot(), &overrides, &dir.path().join("w"), LayersKind::Copy, None);
        assert!(made.unwrap_err().hint.is_some(), "{path}");
    }
}

#[test]
fn a_supplied_new_script_is_executable_and_a_replaced_file_keeps_its_mode() {
    for kind in KINDS {
        let place = TestRepo::with_repo();
        let laid =
            [("go.sh".into(), b"#!/bin/sh\n".to_vec()), ("run.sh".into(), b"other".to_vec()), ("t".into(), vec![])];
        let workspace = place.workspace_with("w", kind, &laid);
        let Some(shown) = mounted_contents(&workspace) else { continue };
        assert_eq!((shown["go.sh"].0, shown["run.sh"].0, shown["t"].0), (true, true, false));
    }
}
