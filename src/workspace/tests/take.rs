//! Tests of taking snapshots.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::support::{TestRepo, files, sh};
use crate::error::FailureKind;
use crate::workspace::Snapshot;

#[test]
fn version_control_caches_and_backups_are_left_out() {
    let place = TestRepo::with_repo();
    for path in
        [".git/HEAD", "pkg/__pycache__/a.pyc", "x.pyc", ".ipynb_checkpoints/n.ipynb", "main.py~", "main.py.orig"]
    {
        place.file(path, b"original");
    }
    let names: Vec<String> = files(place.snapshot().tree()).into_keys().collect();
    assert_eq!(
        names,
        [
            "data/points.csv",
            "main.py",
            "no newline",
            "pkg/__init__.py",
            "pkg/deep/er/data.bin",
            "pkg/empty.py",
            "run.sh",
            "shortcut"
        ]
    );
}

#[test]
fn a_snapshot_equals_the_repo_and_its_digest_depends_only_on_contents_names_and_executable_bits() {
    let place = TestRepo::with_repo();
    let first = place.snapshot();
    assert_eq!(files(first.tree()), files(&place.repo));
    sh(&place.repo, "touch -d 2001-01-01 main.py; chmod 600 main.py");
    assert_eq!(place.snapshot().digest(), first.digest());
    let mut digests = vec![first.digest().to_owned()];
    for change in
        ["chmod 755 main.py", "printf x >> main.py", "mv main.py other.py", "mkdir empty", "ln -sfn pkg shortcut"]
    {
        sh(&place.repo, change);
        let digest = place.snapshot().digest().to_owned();
        assert!(!digests.contains(&digest), "{change}");
        digests.push(digest);
    }
}

#[test]
fn the_digest_is_the_same_on_every_machine() {
    let place = TestRepo::new();
    place.file("a.py", b"pass\n");
    assert_eq!(place.snapshot().digest(), "c0558c54351aead1db566681ab603365ee3392b3864e4e73f7221a06aa9807fd");
}

#[test]
fn editing_the_repo_does_not_change_a_snapshot_taken_before() {
    let place = TestRepo::with_repo();
    let snapshot = place.snapshot();
    let before = files(snapshot.tree());
    sh(&place.repo, "printf changed >> main.py; printf changed >> run.sh");
    assert_eq!(files(snapshot.tree()), before);
    let links = std::fs::metadata(snapshot.tree().join("main.py")).unwrap().nlink();
    assert_eq!(links, 1, "no hard links");
}

#[test]
fn links_that_lead_out_are_refused_and_links_inside_are_kept() {
    for (target, at) in [
        ("/etc/passwd", "link"),
        ("../outside", "link"),
        ("pkg/../../outside", "link"),
        ("../../outside", "pkg/link"),
        ("up/../..", "link"),
        ("shortcut/../../..", "link"),
        ("link", "link"),
    ] {
        let place = TestRepo::with_repo();
        symlink("pkg", place.repo.join("up")).unwrap();
        symlink(target, place.repo.join(at)).unwrap();
        let error = Snapshot::take(&place.repo, &place.cache, None).unwrap_err();
        assert_eq!(error.kind, FailureKind::Suite, "{target}");
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert!(error.place.unwrap().0.ends_with(at));
        assert!(error.hint.unwrap().contains("replace the link"));
    }
    for target in ["main.py", "pkg/../main.py", "shortcut/er/data.bin", "nowhere", "."] {
        let place = TestRepo::with_repo();
        symlink(target, place.repo.join("link")).unwrap();
        assert_eq!(std::fs::read_link(place.snapshot().tree().join("link")).unwrap().to_str(), Some(target));
    }
}

#[test]
fn a_link_that_leads_out_through_another_link_is_refused() {
    let place = TestRepo::with_repo();
    std::fs::create_dir_all(place.repo.join("a/b")).unwrap();
    symlink("a/b", place.repo.join("deep")).unwrap();
    symlink("deep/../..", place.repo.join("fine")).unwrap();
    place.snapshot();
    symlink("deep/../../..", place.repo.join("out")).unwrap();
    assert!(Snapshot::take(&place.repo, &place.cache, None).is_err());
}

#[test]
fn special_files_and_invalid_names_are_refused() {
    for script in ["mkfifo pipe", r#"touch "$(printf 'a\377b')""#] {
        let place = TestRepo::with_repo();
        sh(&place.repo, script);
        let error = Snapshot::take(&place.repo, &place.cache, None).unwrap_err();
        assert_eq!(error.kind, FailureKind::Suite, "{script}");
        assert!(error.hint.is_some());
    }
}

#[test]
fn the_hint_of_a_missing_repo_names_its_folder() {
    let place = TestRepo::new();
    let error = Snapshot::take(&place.dir.path().join("none"), &place.cache, None).unwrap_err();
    assert_eq!(error.kind, FailureKind::Suite);
    assert!(error.hint.unwrap().contains("repos/"));
}

#[test]
fn concurrent_builders_make_one_complete_snapshot() {
    let place = TestRepo::with_repo();
    for number in 0..200 {
        place.file(&format!("many/{number}"), &[7; 5000]);
    }
    let trees: Vec<_> = std::thread::scope(|scope| {
        let builders: Vec<_> = (0..8).map(|_| scope.spawn(|| place.snapshot().tree().to_owned())).collect();
        builders.into_iter().map(|builder| builder.join().unwrap()).collect()
    });
    assert!(trees.iter().all(|tree| tree == &trees[0]));
    assert_eq!(files(&trees[0]), files(&place.repo));
}

#[test]
fn the_remains_of_a_killed_build_are_replaced() {
    let place = TestRepo::with_repo();
    let tree = place.snapshot().tree().to_owned();
    let home = tree.parent().unwrap();
    std::fs::remove_file(home.join("complete")).unwrap();
    std::fs::remove_file(tree.join("main.py")).unwrap();
    let partial = home.with_file_name(format!("{}.partial", home.file_name().unwrap().to_str().unwrap()));
    std::fs::create_dir_all(partial.join("tree/half")).unwrap();
    assert_eq!(files(place.snapshot().tree()), files(&place.repo));
    assert!(!partial.exists());
}

#[test]
#[ignore = "needs root to give files away"]
fn a_snapshots_files_belong_to_the_sandboxs_user_and_all_users_may_read_them() {
    let place = TestRepo::with_repo();
    sh(&place.repo, "chmod 600 main.py; chmod 700 pkg");
    let snapshot = Snapshot::take(&place.repo, &place.cache, Some((64000, 64001))).unwrap();
    for (path, mode) in [("main.py", 0o644), ("pkg", 0o755), ("run.sh", 0o755), ("", 0o755), ("shortcut", 0o777)] {
        let metadata = std::fs::symlink_metadata(snapshot.tree().join(path)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (64000, 64001), "{path}");
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{path}");
    }
}
