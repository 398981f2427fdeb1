//! A workspace that the harness cannot see: how files get into a container, and how what was changed gets out.
//!
//! The init lays files, surveys the tree and collects contents. The harness's side is `docker::upper`. Both exchange
//! lists of items in the format of the other messages.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::stat::{FileStat, SFlag};
use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};

use super::wire::{next_item, put_item};
use crate::workspace::{DEEPEST, Folder, LONGEST_PATH, is, is_left_out, remove_tree};

/// The modification time of all files in a repo's image: seconds since 1970. A file with another one was written since.
pub(in crate::sandbox) const STAMP: u64 = 1_000_000_000;

/// A point in time as file systems keep it: seconds since 1970, and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sandbox) struct Moment(pub(super) i64, pub(super) i64);

/// One file to lay before the attempt starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) enum Laid {
    /// A file, and whether it may be executed.
    File {
        executable: bool,
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// Nothing must be there.
    Gone,
}

/// What an entry of the workspace is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) enum Sort {
    /// A folder.
    Folder,
    /// A regular file; `fresh` when it was written or changed since the sandbox started.
    File { executable: bool, size: u64, fresh: bool },
    /// A symbolic link and where it points.
    Link(#[serde(with = "serde_bytes")] Vec<u8>),
    /// Anything else, or an entry too deep to be kept.
    Other,
}

/// One entry of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct Surveyed {
    /// Bytes relative to the workspace, `/` between the parts.
    #[serde(with = "serde_bytes")]
    pub(in crate::sandbox) path: Vec<u8>,
    pub(in crate::sandbox) sort: Sort,
}

/// One item of a survey's list.
#[derive(Serialize, Deserialize)]
enum Item {
    Entry(Surveyed),
    /// A limit ended the survey here.
    Cut,
}

fn garbled() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a path that leads out of the workspace")
}

/// A path below the workspace, refused when it could lead anywhere else.
pub(super) fn inside(path: &[u8]) -> io::Result<&Path> {
    let path = Path::new(OsStr::from_bytes(path));
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if plain && !path.as_os_str().is_empty() { Ok(path) } else { Err(garbled()) }
}

/// Files to lay, as [`lay`] takes them.
pub(in crate::sandbox) fn encode_laid(files: &[(Vec<u8>, Laid)]) -> io::Result<Vec<u8>> {
    let mut to = Vec::new();
    files.iter().try_for_each(|(path, laid)| put_item(&mut to, &(Bytes::new(path), laid)))?;
    Ok(to)
}

/// Writes and removes files below `root` as the list says, in its order.
pub(in crate::sandbox) fn lay(root: &Path, mut list: &[u8]) -> io::Result<()> {
    while let Some((path, laid)) = next_item::<(ByteBuf, Laid)>(&mut list)? {
        let path = inside(&path)?;
        make_room(root, path)?;
        let target = root.join(path);
        remove_tree(&target)?;
        if let Laid::File { executable, bytes } = laid {
            let mode = if executable { 0o755 } else { 0o644 };
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&target)?.write_all(&bytes)?;
            fs::set_permissions(&target, Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

/// Makes the folders above `path`, in place of files and links.
fn make_room(root: &Path, path: &Path) -> io::Result<()> {
    let mut here = root.to_path_buf();
    for part in path.parent().into_iter().flat_map(Path::components) {
        here.push(part);
        match fs::symlink_metadata(&here) {
            Ok(found) if found.is_dir() => continue,
            Ok(_) => fs::remove_file(&here)?,
            Err(_) => {}
        }
        fs::create_dir(&here)?;
    }
    Ok(())
}

/// How far a survey goes. What lies beyond is the attempt's own doing, and not taken over.
#[derive(Debug, Clone, Copy)]
pub(in crate::sandbox) struct SurveyLimits {
    /// Entries that were written since the sandbox began.
    pub(in crate::sandbox) fresh: usize,
    /// Bytes of the list; as many again may be held in names of folders' entries.
    pub(in crate::sandbox) bytes: usize,
    /// Time, once there are more fresh entries than [`SLOW`]; a survey of fewer is slow for the machine's own reasons.
    pub(in crate::sandbox) wall: Duration,
}

impl Default for SurveyLimits {
    /// Far more than workspaces list, and less than a file job may take.
    fn default() -> Self {
        Self { fresh: 100_000, bytes: LISTING, wall: Duration::from_secs(30) }
    }
}

/// The most bytes of a survey, its last entry and its end apart.
pub(in crate::sandbox) const LISTING: usize = 64 << 20;
/// The most bytes of one entry of a survey: its path, where it points, and what is said of it.
pub(in crate::sandbox) const ENTRY: usize = 8 << 10;
/// Bytes of a path; a repo has no longer ones. What lies deeper is named by the folder at which it becomes longer.
const LONGEST: usize = LONGEST_PATH;
/// Fresh entries that no honest attempt leaves.
const SLOW: usize = 10_000;
/// What a name takes beside its bytes while a folder is walked.
const NAME: usize = 48;

/// What [`survey`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox) struct Survey {
    /// Folders before what is in them.
    pub(in crate::sandbox) entries: Vec<Surveyed>,
    /// Whether a limit ended it before the tree did: what is not listed may be there nevertheless.
    pub(in crate::sandbox) is_cut: bool,
}

impl Survey {
    /// A survey that was cut, together with what [`survey_known`] found of these paths, which comes first.
    pub(in crate::sandbox) fn completed(self, paths: &BTreeSet<Vec<u8>>, found: Self) -> Self {
        let others = self.entries.into_iter().filter(|entry| !paths.contains(&entry.path));
        Self { entries: found.entries.into_iter().chain(others).collect(), is_cut: found.is_cut }
    }
}

/// Lists everything below `root` but what snapshots leave out, folders before what is in them, until a limit is
/// reached, which the list then says.
pub(in crate::sandbox) fn survey(
    root: &Path,
    since: Option<Moment>,
    limits: SurveyLimits,
    to: &mut impl Write,
) -> io::Result<()> {
    let mut walk = Walk { since, limits, begun: Instant::now(), fresh: 0, bytes: 0, held: 0, to };
    if walk.folder(&Folder::open_again(root)?, &mut Vec::new(), 0)?.is_break() {
        to.write_all(&encoded(&Item::Cut)?)?;
    }
    Ok(())
}

struct Walk<'a, W> {
    since: Option<Moment>,
    limits: SurveyLimits,
    begun: Instant,
    fresh: usize,
    bytes: usize,
    held: usize,
    to: &'a mut W,
}

impl<W: Write> Walk<'_, W> {
    /// Breaks when a limit is reached.
    fn folder(&mut self, folder: &Folder, path: &mut Vec<u8>, depth: usize) -> io::Result<ControlFlow<()>> {
        let room = self.limits.bytes - self.held;
        let Some(names) = folder.entries_within(|name| name.len() + NAME, room)? else {
            return Ok(ControlFlow::Break(()));
        };
        let held: usize = names.iter().map(|name| name.len() + NAME).sum();
        self.held += held;
        for name in names {
            if is_left_out(&name.to_string_lossy()) {
                continue;
            }
            let stat = folder.stat(&name)?;
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name.as_bytes());
            let (sort, is_fresh) = sort(folder, &name, &stat, self.since, depth >= DEEPEST || path.len() > LONGEST)?;
            self.fresh += usize::from(is_fresh);
            let is_slow = self.fresh > SLOW && self.begun.elapsed() > self.limits.wall;
            if self.fresh > self.limits.fresh || self.bytes > self.limits.bytes || is_slow {
                return Ok(ControlFlow::Break(()));
            }
            let is_folder = sort == Sort::Folder;
            let entry = encoded(&Item::Entry(Surveyed { path: path.clone(), sort }))?;
            self.bytes += entry.len();
            self.to.write_all(&entry)?;
            if is_folder && self.folder(&folder.folder(&name)?, path, depth + 1)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            path.truncate(length);
        }
        self.held -= held;
        Ok(ControlFlow::Continue(()))
    }
}

/// What an entry is, and whether it was written or changed since the sandbox began.
fn sort(
    folder: &Folder,
    name: &OsStr,
    stat: &FileStat,
    since: Option<Moment>,
    is_too_deep: bool,
) -> io::Result<(Sort, bool)> {
    let changed = since.is_none_or(|since| Moment(stat.st_ctime, stat.st_ctime_nsec) >= since);
    let sort = if is_too_deep {
        Sort::Other
    } else if is(stat, SFlag::S_IFDIR) {
        Sort::Folder
    } else if is(stat, SFlag::S_IFREG) {
        let fresh = changed || stat.st_mtime != STAMP as i64;
        Sort::File { executable: stat.st_mode & 0o100 != 0, size: stat.st_size as u64, fresh }
    } else if is(stat, SFlag::S_IFLNK) {
        Sort::Link(folder.link(name)?)
    } else {
        Sort::Other
    };
    let is_fresh = if let Sort::File { fresh, .. } = sort { fresh } else { changed };
    Ok((sort, is_fresh))
}

/// Lists those of the paths that are there, as [`survey`] does, whatever lies beside them. What was given to an attempt
/// is found by this however much it added.
pub(in crate::sandbox) fn survey_known(
    root: &Path,
    since: Option<Moment>,
    mut paths: &[u8],
    to: &mut impl Write,
) -> io::Result<()> {
    let top = Folder::open_again(root)?;
    while let Some(path) = next_item::<&[u8]>(&mut paths)? {
        if let Some(sort) = known(&top, inside(path)?, since)? {
            to.write_all(&encoded(&Item::Entry(Surveyed { path: path.to_vec(), sort }))?)?;
        }
    }
    Ok(())
}

/// What is at a path, no link followed on the way; `None` when nothing is.
fn known(top: &Folder, path: &Path, since: Option<Moment>) -> io::Result<Option<Sort>> {
    let mut here: Option<Folder> = None;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let folder = here.as_ref().unwrap_or(top);
        let name = part.as_os_str();
        let stat = match folder.stat(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        if parts.peek().is_none() {
            return Ok(Some(sort(folder, name, &stat, since, false)?.0));
        }
        if !is(&stat, SFlag::S_IFDIR) {
            return Ok(None);
        }
        here = Some(folder.folder(name)?);
    }
    Ok(None)
}

/// Paths, as [`survey_known`] takes them.
pub(in crate::sandbox) fn encode_paths<'a>(paths: impl IntoIterator<Item = &'a [u8]>) -> io::Result<Vec<u8>> {
    let mut to = Vec::new();
    paths.into_iter().try_for_each(|path| put_item(&mut to, &Bytes::new(path)))?;
    Ok(to)
}

fn encoded(item: &Item) -> io::Result<Vec<u8>> {
    let mut to = Vec::new();
    put_item(&mut to, item)?;
    Ok(to)
}

/// What [`survey`] or [`survey_known`] wrote.
pub(in crate::sandbox) fn decode_survey(mut list: &[u8]) -> io::Result<Survey> {
    let mut entries = Vec::new();
    while let Some(item) = next_item(&mut list)? {
        let Item::Entry(entry) = item else { return Ok(Survey { entries, is_cut: true }) };
        inside(&entry.path)?;
        entries.push(entry);
    }
    Ok(Survey { entries, is_cut: false })
}

/// The paths whose contents are wanted and the most bytes of each, as [`collect`] takes them.
pub(in crate::sandbox) fn encode_wanted<'a>(wanted: impl IntoIterator<Item = (&'a [u8], u64)>) -> io::Result<Vec<u8>> {
    let mut to = Vec::new();
    wanted.into_iter().try_for_each(|(path, size)| put_item(&mut to, &(Bytes::new(path), size)))?;
    Ok(to)
}

/// Writes the wanted files' bytes, one after the other.
pub(super) fn collect(root: &Path, mut wanted: &[u8], to: &mut impl Write) -> io::Result<()> {
    while let Some((path, most)) = next_item::<(&[u8], u64)>(&mut wanted)? {
        let mut bytes = Vec::new();
        readable(&root.join(inside(path)?))?.take(most).read_to_end(&mut bytes)?;
        let mut item = Vec::with_capacity(bytes.len() + 10);
        put_item(&mut item, &Bytes::new(&bytes))?;
        to.write_all(&item)?;
    }
    Ok(())
}

/// Opens a regular file, made readable first where its owner has closed it.
fn readable(path: &PathBuf) -> io::Result<File> {
    let open = || {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
        OpenOptions::new().read(true).custom_flags(flags).open(path)
    };
    match open() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            open()
        }
        other => other,
    }
}

/// What [`collect`] wrote, in the order of what was wanted.
pub(in crate::sandbox) fn decode_collected(mut bytes: &[u8]) -> io::Result<Vec<&[u8]>> {
    let mut files = Vec::new();
    while let Some(file) = next_item(&mut bytes)? {
        files.push(file);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_laid_over_a_tree_in_place_of_what_is_there() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        fs::write(root.path().join("folder/old"), "old").unwrap();
        fs::write(root.path().join("plain"), "plain").unwrap();
        let file = |text: &str, executable| Laid::File { executable, bytes: text.into() };
        let list = [
            (b"folder".to_vec(), file("now a file", true)),
            (b"plain/deep/new".to_vec(), file("new", false)),
            (b"gone".to_vec(), Laid::Gone),
        ];
        lay(root.path(), &encode_laid(&list).unwrap()).unwrap();
        assert_eq!(fs::read(root.path().join("folder")).unwrap(), b"now a file");
        assert_eq!(fs::metadata(root.path().join("folder")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read(root.path().join("plain/deep/new")).unwrap(), b"new");
    }

    #[test]
    fn no_path_in_a_list_leads_out() {
        let root = tempfile::tempdir().unwrap();
        for path in ["../out", "/etc/passwd", "a/../../out", ""] {
            let list = encode_laid(&[(path.as_bytes().to_vec(), Laid::Gone)]).unwrap();
            assert!(lay(root.path(), &list).is_err(), "{path}");
            let entry = Surveyed { path: path.as_bytes().to_vec(), sort: Sort::Other };
            assert!(decode_survey(&encoded(&Item::Entry(entry)).unwrap()).is_err(), "{path}");
        }
    }

    #[test]
    fn a_survey_tells_kinds_and_which_files_are_fresh_whatever_their_permissions() {
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
        // A sandbox that begins in the future has seen none of these changes.
        let mut list = Vec::new();
        survey(root.path(), Some(Moment(i64::MAX, 0)), SurveyLimits::default(), &mut list).unwrap();
        let file = |path: &str, size, fresh| Surveyed {
            path: path.as_bytes().to_vec(),
            sort: Sort::File { executable: false, size, fresh },
        };
        let entry = |path: &str, sort| Surveyed { path: path.as_bytes().to_vec(), sort };
        let expected = [
            entry("closed", Sort::Folder),
            file("closed/inner", 4, true),
            entry("link", Sort::Link(b"nowhere".to_vec())),
            file("old", 3, false),
        ];
        assert_eq!(decode_survey(&list).unwrap(), Survey { entries: expected.into(), is_cut: false });
        let mut list = Vec::new();
        survey(root.path(), Some(Moment(0, 0)), SurveyLimits::default(), &mut list).unwrap();
        assert!(decode_survey(&list).unwrap().entries.contains(&file("old", 3, true)));
    }

    fn surveyed(root: &Path, limits: SurveyLimits) -> (Vec<String>, bool) {
        let mut list = Vec::new();
        survey(root, None, limits, &mut list).unwrap();
        let survey = decode_survey(&list).unwrap();
        (survey.entries.iter().map(|entry| String::from_utf8_lossy(&entry.path).into()).collect(), survey.is_cut)
    }

    #[test]
    fn a_survey_ends_at_its_limits_and_says_so() {
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
        // The names in the two upper folders fit, not those in the third.
        assert_eq!(surveyed(root.path(), SurveyLimits { bytes: 3 * NAME + 10, ..all }), of(2));
        // Few entries are waited for.
        assert!(!surveyed(root.path(), SurveyLimits { wall: Duration::ZERO, ..all }).1);
        // What was there before the attempt does not count.
        let mut list = Vec::new();
        let stamp = std::time::UNIX_EPOCH + Duration::from_secs(STAMP);
        for name in ["a/b/one", "a/b/two", "three"] {
            File::options().write(true).open(root.path().join(name)).unwrap().set_modified(stamp).unwrap();
        }
        survey(root.path(), Some(Moment(i64::MAX, 0)), SurveyLimits { fresh: 0, ..all }, &mut list).unwrap();
        assert!(!decode_survey(&list).unwrap().is_cut);
    }

    #[test]
    fn a_workspace_that_was_closed_is_opened_for_its_survey() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o050)).unwrap();
        assert_eq!(surveyed(root.path(), SurveyLimits::default()).0, ["file"]);
        assert_eq!(fs::metadata(root.path()).unwrap().permissions().mode() & 0o777, 0o750);
    }

    #[test]
    fn a_survey_of_many_new_files_is_cut_in_time() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..=SLOW {
            File::create(root.path().join(number.to_string())).unwrap();
        }
        let (listed, is_cut) = surveyed(root.path(), SurveyLimits { wall: Duration::ZERO, ..SurveyLimits::default() });
        assert!(is_cut);
        assert_eq!(listed.len(), SLOW);
    }

    #[test]
    fn what_lies_at_the_end_of_a_long_path_is_named_by_a_shorter_one() {
        let root = tempfile::tempdir().unwrap();
        let long = "x".repeat(250);
        // Relative calls, for no path leads there.
        let script = format!("for i in $(seq 60); do mkdir {long}; cd -P {long}; done; echo > deep");
        let made = std::process::Command::new("bash").args(["-ec", &script]).current_dir(root.path()).status().unwrap();
        assert!(made.success());
        let mut list = Vec::new();
        survey(root.path(), None, SurveyLimits::default(), &mut list).unwrap();
        let entries = decode_survey(&list).unwrap().entries;
        let last = entries.last().unwrap();
        assert_eq!(last.sort, Sort::Other);
        assert!(last.path.len() > LONGEST && last.path.len() <= LONGEST + 256, "{}", last.path.len());
        let length = |entry: &Surveyed| encoded(&Item::Entry(entry.clone())).unwrap().len();
        assert!(entries.iter().all(|entry| length(entry) <= ENTRY));
        remove_tree(&root.path().join(&long)).unwrap();
    }

    #[test]
    fn known_paths_are_found_without_a_look_at_others_and_never_through_a_link() {
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
        let file = Sort::File { executable: false, size: 4, fresh: true };
        let expected = vec![entry("folder/closed/file", file), entry("link", Sort::Link(b"folder".to_vec()))];
        assert_eq!(decode_survey(&list).unwrap(), Survey { entries: expected, is_cut: false });
        assert!(survey_known(root.path(), None, &encode_paths([&b"../out"[..]]).unwrap(), &mut Vec::new()).is_err());
    }

    #[test]
    fn collected_files_arrive_in_order_and_no_longer_than_was_asked() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "abcdef").unwrap();
        fs::write(root.path().join("b"), "").unwrap();
        let mut out = Vec::new();
        let wanted = encode_wanted([(&b"b"[..], 10), (&b"a"[..], 3)]).unwrap();
        collect(root.path(), &wanted, &mut out).unwrap();
        assert_eq!(decode_collected(&out).unwrap(), [&b""[..], b"abc"]);
    }
}
