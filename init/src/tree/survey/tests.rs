use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::folder::remove_tree;
use crate::tree::{ENTRY, Survey, decode_survey, encode_paths};

#[test]
fn a_survey_with_a_path_that_leads_out_is_refused() {
    for path in ["../out", "/etc/passwd", "a/../../out", ""] {
        let entry = Surveyed { path: path.as_bytes().to_vec(), sort: NodeType::Other };
        assert!(decode_survey(&encoded(&SurveyItem::Entry(entry)).unwrap()).is_err(), "{path}");
    }
}

fn surveyed(root: &Path, limits: SurveyLimits) -> (Vec<String>, bool) {
    let mut list = Vec::new();
    survey(root, None, limits, &mut list).unwrap();
    let survey = decode_survey(&list).unwrap();
    (survey.entries.iter().map(|entry| String::from_utf8_lossy(&entry.path).into()).collect(), survey.is_cut)
}

#[test]
fn a_survey_lists_kinds_and_fresh_files_even_in_unreadable_folders() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("closed")).unwrap();
    fs::write(at("closed/inner"), "four").unwrap();
    fs::write(at("old"), "old").unwrap();
    fs::create_dir(at("__pycache__")).unwrap();
    std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
    let stamp = std::time::UNIX_EPOCH + std::time::Duration::from_secs(STAMP);
    File::options().write(true).open(at("old")).unwrap().set_modified(stamp).unwrap();
    fs::set_permissions(at("closed"), Permissions::from_mode(0o0)).unwrap();
    // A file is fresh if it was changed after the sandbox's start, or if its modification time is not [`STAMP`]. The
    // start is in the future here, so only the second condition applies.
    let mut list = Vec::new();
    survey(root.path(), Some(FileTime(i64::MAX, 0)), SurveyLimits::default(), &mut list).unwrap();
    let file = |path: &str, size, fresh| Surveyed {
        path: path.as_bytes().to_vec(),
        sort: NodeType::File { executable: false, size, fresh },
    };
    let entry = |path: &str, sort| Surveyed { path: path.as_bytes().to_vec(), sort };
    let expected = [
        entry("closed", NodeType::Folder),
        file("closed/inner", 4, true),
        entry("link", NodeType::Link(b"nowhere".to_vec())),
        file("old", 3, false),
    ];
    assert_eq!(decode_survey(&list).unwrap(), Survey { entries: expected.into(), is_cut: false });
    let mut list = Vec::new();
    survey(root.path(), Some(FileTime(0, 0)), SurveyLimits::default(), &mut list).unwrap();
    assert!(decode_survey(&list).unwrap().entries.contains(&file("old", 3, true)));
}

#[test]
fn a_survey_stops_at_its_limits_and_reports_it() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("a/b")).unwrap();
    for name in ["a/b/one", "a/b/two", "three"] {
        fs::write(root.path().join(name), "").unwrap();
    }
    let all = SurveyLimits::default();
    let whole = ["a", "a/b", "a/b/one", "a/b/two", "three"];
    assert_eq!(surveyed(root.path(), all), (whole.map(str::to_owned).into(), false));
    let of = |count: usize| (whole[..count].iter().map(|&path| path.to_owned()).collect(), true);
    assert_eq!(surveyed(root.path(), SurveyLimits { fresh: 3, ..all }), of(3));
    // Names are counted per folder. Those in the two upper folders fit, but not those in the third.
    assert_eq!(surveyed(root.path(), SurveyLimits { bytes: 3 * NAME + 10, ..all }), of(2));
    // With few entries, the time limit does not apply.
    assert!(!surveyed(root.path(), SurveyLimits { wall: Duration::ZERO, ..all }).1);
    // Entries from before the attempt do not count towards the limit.
    let mut list = Vec::new();
    let stamp = std::time::UNIX_EPOCH + Duration::from_secs(STAMP);
    for name in ["a/b/one", "a/b/two", "three"] {
        File::options().write(true).open(root.path().join(name)).unwrap().set_modified(stamp).unwrap();
    }
    survey(root.path(), Some(FileTime(i64::MAX, 0)), SurveyLimits { fresh: 0, ..all }, &mut list).unwrap();
    assert!(!decode_survey(&list).unwrap().is_cut);
}

#[test]
fn a_workspace_without_permissions_is_opened_for_its_survey() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    fs::set_permissions(root.path(), Permissions::from_mode(0o050)).unwrap();
    assert_eq!(surveyed(root.path(), SurveyLimits::default()).0, ["file"]);
    assert_eq!(fs::metadata(root.path()).unwrap().permissions().mode() & 0o777, 0o750);
}

#[test]
fn a_survey_of_too_many_new_files_is_cut_at_its_time_limit() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..=SLOW {
        File::create(root.path().join(number.to_string())).unwrap();
    }
    let (listed, is_cut) = surveyed(root.path(), SurveyLimits { wall: Duration::ZERO, ..SurveyLimits::default() });
    assert!(is_cut);
    assert_eq!(listed.len(), SLOW);
}

#[test]
fn a_folder_whose_path_is_too_long_is_listed_without_its_contents() {
    let root = tempfile::tempdir().unwrap();
    let long = "x".repeat(250);
    // Enter the folders step by step, because the whole path is too long for one call.
    let script = format!("for i in $(seq 60); do mkdir {long}; cd -P {long}; done; echo > deep");
    let made = std::process::Command::new("bash").args(["-ec", &script]).current_dir(root.path()).status().unwrap();
    assert!(made.success());
    let mut list = Vec::new();
    survey(root.path(), None, SurveyLimits::default(), &mut list).unwrap();
    let entries = decode_survey(&list).unwrap().entries;
    let last = entries.last().unwrap();
    assert_eq!(last.sort, NodeType::Other);
    assert!(last.path.len() > LONGEST && last.path.len() <= LONGEST + 256, "{}", last.path.len());
    let length = |entry: &Surveyed| encoded(&SurveyItem::Entry(entry.clone())).unwrap().len();
    assert!(entries.iter().all(|entry| length(entry) <= ENTRY));
    remove_tree(&root.path().join(&long)).unwrap();
}

#[test]
fn only_requested_paths_are_listed_and_none_through_a_link() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir_all(at("folder/closed")).unwrap();
    fs::write(at("folder/closed/file"), "four").unwrap();
    fs::write(at("folder/other"), "").unwrap();
    std::os::unix::fs::symlink("folder", at("link")).unwrap();
    fs::set_permissions(at("folder/closed"), Permissions::from_mode(0o0)).unwrap();
    let paths = ["folder/closed/file", "gone/file", "link/other", "link", "folder/other/below"];
    let mut list = Vec::new();
    survey_known(root.path(), None, &encode_paths(paths.map(str::as_bytes)).unwrap(), &mut list).unwrap();
    let entry = |path: &str, sort| Surveyed { path: path.into(), sort };
    let file = NodeType::File { executable: false, size: 4, fresh: true };
    let expected = vec![entry("folder/closed/file", file), entry("link", NodeType::Link(b"folder".to_vec()))];
    assert_eq!(decode_survey(&list).unwrap(), Survey { entries: expected, is_cut: false });
    assert!(survey_known(root.path(), None, &encode_paths([&b"../out"[..]]).unwrap(), &mut Vec::new()).is_err());
}
