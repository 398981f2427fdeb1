//! Where a package's sources come from: an index, a folder, an archive, or a git repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::archive::unpack;
use super::index::{Download, IndexClient, is_package_name};
use super::version::VersionRange;
use crate::error::{Error, Result};
use crate::files::hex;
use crate::suite::PartialDate;
use crate::workspace::repo_digest;

/// Time limit of a git command, such as one that copies a repository.
const GIT_LIMIT: Duration = Duration::from_mins(3);

/// Protocols that git may use, in the form of `GIT_ALLOW_PROTOCOL`. All others are forbidden, because some of them,
/// such as `ext::`, run a command that the address contains.
const GIT_PROTOCOLS: &str = "https:http:ssh:git:file";

/// A package as the user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageSource {
    /// Name and version of a package in the user's index. The package's source archive is used.
    Index(String, Option<String>),
    /// A folder.
    Folder(PathBuf),
    /// A source archive.
    Archive(PathBuf),
    /// A git repository, with a branch or tag after `@`.
    Git(String),
}

/// Where sources came from, as recorded in the list of packages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRecord {
    /// Argument of `factory` that gives the same sources: `name==1.2`, a path, or an address.
    pub package: String,
    /// File name of the archive; empty if the sources are not from an archive.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// SHA-256 in hex of the archive, or of the folder's contents.
    pub sha256: String,
    /// When this version was uploaded to the index, if the index says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<PartialDate>,
    /// When the package's first file was uploaded to the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_released: Option<PartialDate>,
    /// Name and version in the index (`name==1.2`) of an archive without tests that these sources replace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

impl SourceRecord {
    /// Returns the record of these sources as a replacement for an archive of the index. The result has the archive's
    /// dates, and the archive's name in `replaces`.
    pub(super) fn replacing(self, archive: &Self) -> Self {
        let Self { package, released, first_released, .. } = archive.clone();
        Self { released, first_released, replaces: Some(package), ..self }
    }

    /// Returns the name and version of the package in an index; `None` if the user has not named the package by its
    /// name there. `asked` is the package as the user named it, and `version` its version.
    pub(super) fn in_index(&self, asked: &str, version: &str) -> Option<(String, String)> {
        if let PackageSource::Index(name, Some(version)) =
            PackageSource::parse(self.replaces.as_ref().unwrap_or(&self.package)).ok()?
        {
            return Some((name, version));
        }
        // Older lists lack `replaces`. In such a list, a repository replaced an archive if its sources are from git
        // although the user named a package of the index.
        match PackageSource::parse(asked).ok()? {
            PackageSource::Index(name, _) if self.package.starts_with("git+") => Some((name, version.to_owned())),
            _ => None,
        }
    }
}

/// Sources in a folder.
#[derive(Debug, Clone)]
pub(super) struct Unpacked {
    /// The folder.
    pub(super) folder: PathBuf,
    /// Where the sources came from.
    pub(super) record: SourceRecord,
}

/// Reads packages: each argument is a package, or a text file that lists one per line.
///
/// # Errors
/// Kind `Usage` for an argument that cannot be read, and for an empty list.
pub fn packages(arguments: &[String]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for argument in arguments {
        let path = Path::new(argument);
        let is_list = path.extension().is_some_and(|extension| extension == "txt" || extension == "list");
        if !(is_list && path.is_file()) {
            found.push(argument.clone());
            continue;
        }
        let text = fs::read_to_string(path).map_err(|error| Error::unreadable(path, error))?;
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        found.extend(lines.filter(|line| !line.is_empty()).map(str::to_owned));
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|package| seen.insert(package.clone()));
    if found.is_empty() {
        return Err(Error::usage("no package is named").hint("name some, or a text file with one per line"));
    }
    Ok(found)
}

impl PackageSource {
    /// Parses a package as the user wrote it: a name with or without a version, a folder, an archive, or an address of
    /// a git repository.
    ///
    /// # Errors
    /// Kind `Usage` for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let path = Path::new(text);
        if text.starts_with("git+")
            || path.extension().is_some_and(|extension| extension == "git")
            || text.contains("://")
        {
            return Ok(Self::Git(text.trim_start_matches("git+").to_owned()));
        }
        if path.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        if [".tar.gz", ".tgz", ".zip"].iter().any(|ending| text.ends_with(ending)) {
            return Ok(Self::Archive(path.to_owned()));
        }
        let (name, version) =
            text.split_once("==").map_or((text, None), |(name, version)| (name, Some(version.trim())));
        if !is_package_name(name.trim())
            || version.is_some_and(|version| version.is_empty() || version.contains([' ', '/']))
        {
            return Err(Error::usage(format!("`{text}` is not a package"))
                .hint("write `name`, `name==version`, a folder, an sdist's path, or a git repository's address"));
        }
        Ok(Self::Index(name.trim().to_owned(), version.map(str::to_owned)))
    }
}

/// Fetches sources. pip is asked for the configured indexes only once.
#[derive(Default)]
pub(super) struct Fetcher {
    index: OnceCell<IndexClient>,
}

impl Fetcher {
    /// Returns the newest version of a package in the index, if it is newer than this one.
    ///
    /// # Errors
    /// `Suite` if the index does not have the package; `Machine` if it does not answer.
    pub(super) async fn newer(&self, name: &str, than: &str) -> Result<Option<String>> {
        self.index.get_or_try_init(IndexClient::open).await?.newer(name, than).await
    }

    /// Returns the newest version of a package in the index that a range allows.
    ///
    /// # Errors
    /// Same as [`Fetcher::newer`].
    pub(super) async fn newest_within(&self, name: &str, range: &VersionRange) -> Result<Option<String>> {
        self.index.get_or_try_init(IndexClient::open).await?.newest_within(name, range).await
    }

    /// Whether an index lists a wheel of a package.
    ///
    /// # Errors
    /// Kind `Machine` if an index does not answer.
    pub(super) async fn has_wheel(&self, name: &str) -> Result<bool> {
        self.index.get_or_try_init(IndexClient::open).await?.has_wheel(name).await
    }

    /// Puts the sources into the new folder `into`. If `expected` is given, only sources with this digest are accepted.
    ///
    /// # Errors
    /// Kind `Usage` for a path that does not exist; `Suite` for sources that do not exist, are broken or have another
    /// digest; `Machine` if the index or repository does not answer, or the index sends something else than it lists.
    pub(super) async fn get(
        &self,
        source: &PackageSource,
        into: &Path,
        expected: Option<&SourceRecord>,
    ) -> Result<Unpacked> {
        let digest = expected.map(|record| record.sha256.as_str());
        let found = match source {
            PackageSource::Index(name, version) => {
                let index = self.index.get_or_try_init(IndexClient::open).await?;
                let file = expected.map(|record| record.file.as_str());
                let download = index.sdist(name, version.as_deref(), file, digest).await?;
                let folder = unpack(&download.file, &download.bytes, into)?;
                let stem = download.file.trim_end_matches(".tar.gz").trim_end_matches(".zip");
                let version = stem.rsplit('-').next().unwrap_or_default();
                let package = format!("{name}=={version}");
                let Download { file, sha256, released, first_released, .. } = download;
                let record = SourceRecord { package, file, sha256, released, first_released, replaces: None };
                Unpacked { folder, record }
            }
            PackageSource::Folder(folder) => {
                let absolute = std::path::absolute(folder).map_err(|error| Error::io("resolve", folder, error))?;
                let sha256 = repo_digest(&absolute)?;
                let record = SourceRecord { package: folder.display().to_string(), sha256, ..SourceRecord::default() };
                Unpacked { folder: absolute, record }
            }
            PackageSource::Archive(path) => {
                let bytes = fs::read(path).map_err(|error| Error::unreadable(path, error))?;
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let sha256 = hex(&Sha256::digest(&bytes));
                let folder = unpack(&file, &bytes, into)?;
                let package = path.display().to_string();
                Unpacked { folder, record: SourceRecord { package, file, sha256, ..SourceRecord::default() } }
            }
            PackageSource::Git(address) => {
                clone(address, into).await?;
                let sha256 = repo_digest(into)?;
                let record = SourceRecord { package: format!("git+{address}"), sha256, ..SourceRecord::default() };
                Unpacked { folder: into.to_owned(), record }
            }
        };
        if let Some(expected) = digest
            && found.record.sha256 != expected
        {
            return Err(Error::suite(format!(
                "the sources of `{}` have the digest {}, but the list of packages says {expected}",
                found.record.package, found.record.sha256
            ))
            .hint("the list was made from another file of this version: make the list again, or use an index that has that file"));
        }
        Ok(found)
    }
}

/// Copies a git repository, without its submodules.
async fn clone(address: &str, into: &Path) -> Result<()> {
    // A tag contains neither a slash nor a colon. An `@` that is followed by one of them ends a user's name, as in
    // `ssh://user@host/repo`.
    let (url, tag) = match address.rsplit_once('@') {
        Some((url, tag)) if !tag.contains(['/', ':']) && !tag.is_empty() => (url, Some(tag)),
        _ => (address, None),
    };
    if url.starts_with('-') || tag.is_some_and(|tag| tag.starts_with('-')) {
        return Err(Error::usage(format!("`{address}` is not an address")));
    }
    let mut command = git();
    command.args(["clone", "--quiet", "--depth=1"]);
    if let Some(tag) = tag {
        command.args(["--branch", tag]);
    }
    command.arg("--").arg(url).arg(into);
    run_git(command).await.map(|_| ()).map_err(|said| {
        Error::machine(format!("failed to copy the git repository: {}", last_line(&said)))
            .hint("check the network and the address, or give a folder or an sdist instead")
    })
}

/// Returns those of `names` that are tags or branches of a git repository. Call this only if this machine has just
/// reached another host: then the network works, so if this host has no address, it does not exist any more.
///
/// # Errors
/// Kind `Usage` if `address` is not an address; `Suite` if there is no such host, if it refuses connections or access,
/// or if it has no such repository; `Machine` if the host does not answer in time, or with a passing error.
pub(super) async fn tags_in_repository(address: &str, names: &[String]) -> Result<Vec<String>> {
    if address.starts_with('-') {
        return Err(Error::usage(format!("`{address}` is not an address")));
    }
    let mut command = git();
    command.args(["ls-remote", "--quiet", "--", address]).args(names);
    let listed = run_git(command).await.map_err(|said| {
        if is_denial(&said) {
            Error::suite(format!("there is no git repository at `{address}`"))
        } else if is_dead_host(&said, address) {
            Error::suite(format!("the git repository at `{address}` cannot be read: {}", last_line(&said)))
        } else {
            Error::machine(format!("failed to ask for the tags of a git repository: {}", last_line(&said)))
                .hint("check the network, and repeat the command")
        }
    })?;
    let references: Vec<&str> = listed.lines().filter_map(|line| Some(line.split_once('\t')?.1)).collect();
    let exists = |name: &&String| {
        ["refs/tags/", "refs/heads/"].iter().any(|kind| references.contains(&format!("{kind}{name}").as_str()))
    };
    Ok(names.iter().filter(exists).cloned().collect())
}

/// Returns a git command that runs no hooks, asks no questions (for example for a password), writes its messages in
/// English, and uses only the protocols in [`GIT_PROTOCOLS`].
fn git() -> tokio::process::Command {
    let mut command = tokio::process::Command::new("git");
    command.args(["-c", "core.hooksPath=/dev/null"]);
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_LFS_SKIP_SMUDGE", "1").env("GIT_ASKPASS", "true");
    command.env("GIT_ALLOW_PROTOCOL", GIT_PROTOCOLS).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Runs a git command. Returns its output or, if it fails, its messages.
async fn run_git(mut command: tokio::process::Command) -> Result<String, String> {
    let output = tokio::time::timeout(GIT_LIMIT, command.output())
        .await
        .map_err(|_| format!("it took more than {} s", GIT_LIMIT.as_secs()))?
        .map_err(|error| format!("git could not be started: {error}"))?;
    let said = if output.status.success() { &output.stdout } else { &output.stderr };
    let said = String::from_utf8_lossy(said).into_owned();
    if output.status.success() { Ok(said) } else { Err(said) }
}

fn last_line(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim()
}

/// Whether git's messages say that the host answered, and has no repository at this address that everybody can read.
fn is_denial(said: &str) -> bool {
    // HTTP statuses that do not show that there is no repository: they may be due to the network, the time, too many
    // requests, or a lack of rights.
    const PASSING: [&str; 6] = ["403", "407", "408", "421", "425", "429"];
    let said = said.to_lowercase();
    let status = said.split_once("the requested url returned error: ").map(|(_, status)| status.get(..3).unwrap_or(""));
    status.is_some_and(|status| status.starts_with('4') && !PASSING.contains(&status))
        || said.lines().any(|line| line.contains("repository") && line.contains("not found"))
        || [
            "does not appear to be a git repository",
            "is this a git repository?",
            "authentication failed",
            "could not read username",
            "unable to update url base from redirection",
        ]
        .iter()
        .any(|part| said.contains(part))
}

/// Whether git's messages say that the host of a web address does not exist, or refuses connections or access, or has
/// no valid certificate. Messages about names and connections count only if they are about this host, and not, for
/// example, about a proxy.
fn is_dead_host(said: &str, address: &str) -> bool {
    let (said, address) = (said.to_lowercase(), address.to_lowercase());
    let host = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
    let host = host.split(['/', ':']).next().unwrap_or_default();
    said.lines().any(|line| {
        let is_refused = line.contains("connection refused") || line.contains("couldn't connect to server");
        line.contains(&format!("could not resolve host: {host}"))
            || (line.contains(&format!("failed to connect to {host} port")) && is_refused)
            || line.contains("the requested url returned error: 403")
            || line.contains("certificate problem")
            || line.contains("certificate verification failed")
            || line.contains("certificate subject name")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FailureKind;

    #[test]
    fn package_names_archives_and_git_addresses_are_told_apart() {
        let parsed = |text: &str| PackageSource::parse(text);
        assert_eq!(parsed("six").unwrap(), PackageSource::Index("six".into(), None));
        assert_eq!(parsed("a.b_c==1.0").unwrap(), PackageSource::Index("a.b_c".into(), Some("1.0".into())));
        assert_eq!(parsed("x-1.0.tar.gz").unwrap(), PackageSource::Archive("x-1.0.tar.gz".into()));
        assert_eq!(parsed("git+https://h/x.git@v1").unwrap(), PackageSource::Git("https://h/x.git@v1".into()));
        for text in ["", "-r", "a b", "a>=1", "./nowhere", "a=="] {
            assert!(parsed(text).unwrap_err().message.contains("is not a package"), "{text}");
        }
    }

    #[test]
    fn sources_of_a_repository_have_the_name_and_dates_of_the_archive_that_they_replace() {
        let date = "2025-03-01".parse().ok();
        let archive = SourceRecord {
            package: "p==1.5".to_owned(),
            file: "p-1.5.tar.gz".to_owned(),
            released: date,
            first_released: date,
            ..SourceRecord::default()
        };
        let git = SourceRecord { package: "git+https://h/p@v1.5".to_owned(), ..SourceRecord::default() };
        assert_eq!(git.in_index("https://h/p.git@v1.5", "1.5"), None);
        let in_index = Some(("p".to_owned(), "1.5".to_owned()));
        assert_eq!(git.in_index("p", "1.5"), in_index);
        let folder = SourceRecord { package: "/home/p".to_owned(), ..SourceRecord::default() };
        assert_eq!(folder.in_index("p", "1.5"), None);
        let found = git.replacing(&archive);
        assert_eq!((found.package.as_str(), found.file.as_str()), ("git+https://h/p@v1.5", ""));
        assert_eq!((found.released, found.first_released), (date, date));
        assert_eq!((found.in_index("p", "0"), archive.in_index("p", "0")), (in_index.clone(), in_index));
    }

    #[test]
    fn a_list_names_one_package_per_line_and_none_twice() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list.txt");
        fs::write(&list, "# numerics\nsix\n\nidna==3.7 # text\nsix\n").unwrap();
        assert_eq!(packages(&[list.display().to_string(), "idna==3.7".into()]).unwrap(), ["six", "idna==3.7"]);
        fs::write(&list, "# nothing\n").unwrap();
        assert!(packages(&[list.display().to_string()]).is_err());
    }

    /// Makes a git repository with one commit that has the tag `v1.0`.
    fn repository(folder: &Path) {
        for arguments in [
            ["init", "--quiet", "--initial-branch=main"].as_slice(),
            &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "--message=a"],
            &["tag", "v1.0"],
        ] {
            let status = std::process::Command::new("git").args(arguments).current_dir(folder).status().unwrap();
            assert!(status.success());
        }
    }

    #[tokio::test]
    async fn only_the_tags_that_a_git_repository_has_are_returned() {
        let folder = tempfile::tempdir().unwrap();
        repository(folder.path());
        let names = ["v1.0".to_owned(), "1.0".to_owned(), "main".to_owned()];
        let address = folder.path().display().to_string();
        assert_eq!(tags_in_repository(&address, &names).await.unwrap(), ["v1.0", "main"]);
    }

    #[tokio::test]
    async fn a_host_that_does_not_answer_is_not_a_repository_that_does_not_exist() {
        let names = ["v1.0".to_owned()];
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent").display().to_string();
        assert_eq!(tags_in_repository(&absent, &names).await.unwrap_err().kind, FailureKind::Suite);
        for said in [
            "remote: Repository not found.\nfatal: repository 'https://h/a/b/' not found",
            "fatal: Authentication failed for 'https://h/a/b/'",
            "fatal: unable to access 'https://h/a/b/': The requested URL returned error: 410",
        ] {
            assert!(is_denial(said), "{said}");
        }
        for said in [
            "fatal: unable to access 'https://h/a/b/': Could not resolve host: h",
            "fatal: unable to access 'https://h/a/b/': The requested URL returned error: 503",
            "fatal: unable to access 'https://h/a/b/': The requested URL returned error: 429",
            "it took more than 180 s",
        ] {
            assert!(!is_denial(said), "{said}");
        }
        let is_dead =
            |said: &str| is_dead_host(&format!("fatal: unable to access 'https://h/a/': {said}"), "https://h/a");
        for said in [
            "Could not resolve host: h",
            "Failed to connect to h port 443 after 10 ms: Couldn't connect to server",
            "The requested URL returned error: 403",
            "SSL certificate problem: certificate has expired",
            "server certificate verification failed. CAfile: none CRLfile: none",
        ] {
            assert!(is_dead(said), "{said}");
        }
        for said in [
            "Could not resolve proxy: p",
            "Could not resolve host: p",
            "Failed to connect to p port 3128 after 10 ms: Couldn't connect to server",
            "Failed to connect to h port 443 after 130000 ms: Connection timed out",
            "The requested URL returned error: 503",
        ] {
            assert!(!is_dead(said), "{said}");
        }
    }

    #[tokio::test]
    async fn an_address_of_a_git_repository_is_neither_an_option_nor_a_command() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("made");
        let into = folder.path().join("clone");
        let command = format!("ext::touch {}", made.display());
        let option = format!("--upload-pack=touch {}", made.display());
        for address in [command, option] {
            assert!(clone(&address, &into).await.is_err());
            assert!(tags_in_repository(&address, &[]).await.is_err());
        }
        assert!(!made.exists());
    }
}
