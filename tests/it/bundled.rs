//! The bundled suite, and the suite that `init` writes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Lab, PROGRAM};

/// Folders of the checkout that make up the bundled suite.
const PARTS: [&str; 6] = ["papers", "repos", "envs", "commands", "tasks", "wheels"];

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .flat_map(|entry| {
            let path = entry.unwrap().path();
            let is_left = path.ends_with("__pycache__") || (path.ends_with("results") && !path.is_file());
            match path.is_dir() {
                true if is_left => Vec::new(),
                true => self::files(&path),
                false => vec![path],
            }
        })
        .collect();
    files.sort();
    files
}

/// Returns the folders of unpacked suites.
fn unpacked(lab: &Lab) -> Vec<PathBuf> {
    fs::read_dir(lab.path("data/suites")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn in_a_folder_without_a_suite_the_whole_bundled_suite_is_unpacked_read_only() {
    let lab = Lab::bare();
    let listed = lab.ok(&["list"]);
    assert!(listed.stdout.contains("suite: bundled with autoexperiment, in `"), "{}", listed.stdout);
    let [suite] = unpacked(&lab).try_into().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for part in PARTS {
        let (ours, theirs) = (files(&here.join(part)), files(&suite.join(part)));
        assert_eq!(ours.len(), theirs.len(), "{part}");
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert_eq!(fs::read(ours).unwrap(), fs::read(&theirs).unwrap(), "{}", theirs.display());
            assert_eq!(fs::metadata(&theirs).unwrap().permissions().mode() & 0o777, 0o444);
        }
    }
    lab.ok(&["check", "kmeanspp"]);
    lab.ok(&["sample", "-p", "kmeanspp"]);
    for family in ["command", "notebook"] {
        assert!(lab.ok(&["list", "--family", family]).stdout.contains("suite: bundled"), "{family}");
    }
    // The bundled suite is never written to.
    for verb in [&["verify"][..], &["gold", "kmeanspp"], &["env", "lock", "numpy-sklearn"]] {
        let said = lab.run(verb);
        assert!(said.code != 0 && said.stderr.contains("the bundled one is read-only"), "{verb:?}: {}", said.stderr);
    }
    fs::set_permissions(suite.join("papers"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(suite.join("papers/more"), "").unwrap();
    let said = lab.fails(3, &["list"]);
    assert!(said.contains("the bundled suite has been changed") && said.contains("remove the folder"), "{said}");
}

#[test]
fn an_enclosing_or_named_suite_takes_precedence_over_the_bundled_one() {
    let lab = Lab::new();
    let said = lab.ok(&["list"]).stdout;
    assert!(said.contains(&format!("suite: `{}`", lab.path("").display()).replace("/`", "`")), "{said}");
    assert!(!lab.path("data").exists());
    let said = lab.fails(3, &["list", "--suite", "runs"]);
    assert!(said.contains("no suite in"), "{said}");
}

#[test]
fn a_suite_whose_unpacking_was_killed_is_unpacked_again() {
    let lab = Lab::bare();
    for wait in [0, 2, 5, 10, 20, 40, 80] {
        let mut child = lab.command(&["list", "--json"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let _ = child.kill();
        child.wait().unwrap();
    }
    let mut both =
        [lab.command(&["list"]), lab.command(&["list"])].map(|mut it| it.stdout(Stdio::null()).spawn().unwrap());
    assert!(both.iter_mut().all(|child| child.wait().unwrap().success()));
    let whole = unpacked(&lab).into_iter().filter(|it| !it.file_name().unwrap().to_string_lossy().starts_with('.'));
    assert_eq!(whole.count(), 1);
}

#[test]
fn init_writes_a_suite_that_passes_the_check_and_can_be_run() {
    let lab = Lab::bare();
    let said = lab.ok(&["init", "mine"]).stderr;
    assert!(said.contains("a suite with the paper `example`"), "{said}");
    let mine = |arguments: &[&str]| {
        let mut command = lab.command(arguments);
        let output = command.current_dir(lab.path("mine")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        said
    };
    let said = mine(&["check"]);
    assert!(!said.contains("warning") && !said.contains("error"), "{said}");
    let said = mine(&["run", "-n", "1", "--limit", "1", "--agent", "gold", "--agent", "noop", "--name", "r"]);
    assert!(said.contains("100.0"), "{said}");
    let record = lab.read("mine/runs/r/attempts.jsonl");
    assert!(record.contains("\"pass\":true") && record.contains("\"pass\":false"), "{record}");
    // Existing files are not overwritten.
    let said = lab.fails(2, &["init", "mine"]);
    assert!(said.contains("exists"), "{said}");
    lab.ok(&["init", "--bundled", "all"]);
    let listed = lab.command(&["list"]).current_dir(lab.path("all")).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("kmeanspp"));
    assert!(!lab.path("data").exists());
}

#[test]
fn an_unwritable_home_is_an_error_with_a_remedy() {
    let lab = Lab::bare();
    lab.write("file", "");
    let output = std::process::Command::new(PROGRAM)
        .arg("list")
        .current_dir(lab.path(""))
        .env("AUTOEXPERIMENT_DATA", lab.path("file/data"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(12) && said.contains("set `AUTOEXPERIMENT_DATA`"), "{said}");
}
