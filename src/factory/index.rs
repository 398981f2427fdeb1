//! Reads a package index and downloads source archives, without pip, because pip runs a package's own code to find out
//! what it downloads.

use std::time::Duration;

use regex::Regex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::version::{Version, VersionRange};
use crate::env::{PipIndexes, pip_indexes};
use crate::error::{Error, FailureKind, Result};
use crate::files::hex;
use crate::suite::PartialDate;

/// Maximum size of a downloaded archive in bytes.
const LARGEST: u64 = 128 << 20;

/// Number of tries of a download.
const TRIES: u32 = 3;

/// Timeouts for connecting, and for a server that sends nothing.
const TIMEOUTS: (Duration, Duration) = (Duration::from_secs(15), Duration::from_mins(1));

/// A file that an index lists.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListedFile {
    name: String,
    address: String,
    sha256: Option<String>,
    yanked: bool,
    /// Day on which the file was uploaded, if the index states it.
    uploaded: Option<PartialDate>,
}

/// A downloaded source archive.
#[derive(Debug, Clone)]
pub(super) struct Download {
    /// Name of the file.
    pub(super) file: String,
    /// Contents of the file.
    pub(super) bytes: Vec<u8>,
    /// SHA-256 of the file in hex.
    pub(super) sha256: String,
    /// Days on which this file and the package's first file were uploaded, if the index states them.
    pub(super) released: Option<PartialDate>,
    pub(super) first_released: Option<PartialDate>,
}

/// A client of the indexes that pip uses.
pub(super) struct IndexClient {
    indexes: PipIndexes,
    http: reqwest::Client,
}

impl IndexClient {
    /// Asks pip for its indexes.
    ///
    /// # Errors
    /// Kind `Machine` if pip does not answer or TLS cannot be set up.
    pub(super) async fn open() -> Result<Self> {
        let indexes = pip_indexes().await?;
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(TIMEOUTS.0)
            .read_timeout(TIMEOUTS.1);
        if let Some(path) = &indexes.certificates {
            let pem = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
            let certificates = reqwest::Certificate::from_pem_bundle(&pem)
                .map_err(|error| Error::machine("pip's certificates cannot be read").at(path, None).because(error))?;
            builder = builder.tls_certs_merge(certificates);
        }
        let http = builder.build().map_err(|error| Error::machine("failed to set up HTTP").because(error))?;
        Ok(Self { indexes, http })
    }

    /// Downloads the source archive of a package: of this version, or of the newest one that is neither yanked nor a
    /// preview. If a version has several archives, the one with the name `file` is downloaded. If `sha256` (hex) is
    /// given, only an archive with this digest is accepted.
    ///
    /// # Errors
    /// Kind `Suite` if there is no such package, version or archive, or if the archive does not have the digest
    /// `sha256`; `Machine` if the index does not answer or sends something else than it lists.
    pub(super) async fn sdist(
        &self,
        name: &str,
        version: Option<&str>,
        file: Option<&str>,
        sha256: Option<&str>,
    ) -> Result<Download> {
        let listed = self.listed_with(name, is_archive).await?;
        let chosen = choose(name, &listed, version, file)?;
        let bytes = self.bytes(&chosen.address).await?;
        let found = hex(&Sha256::digest(&bytes));
        let differs = |expected: &&str| !expected.eq_ignore_ascii_case(&found);
        if let Some(other) = chosen.sha256.as_deref().filter(differs) {
            return Err(Error::machine(format!(
                "`{}` has the digest {found}, but {other} is expected: the index sent another file",
                chosen.name
            )));
        }
        if let Some(other) = sha256.filter(differs) {
            return Err(Error::suite(format!(
                "`{}` has the digest {found}, but the list has {other}: the index now has another file of this name",
                chosen.name
            )));
        }
        // If any file has no date, the date of the first file is unknown, because that file may be older than all
        // others.
        let dates: Option<Vec<PartialDate>> = listed.iter().map(|file| file.uploaded).collect();
        let first_released = dates.and_then(|dates| dates.into_iter().min_by_key(|date| date.first()));
        Ok(Download { file: chosen.name.clone(), bytes, sha256: found, released: chosen.uploaded, first_released })
    }

    /// Returns the newest version that is neither yanked nor a preview, if it is newer than this one.
    ///
    /// # Errors
    /// Same as [`IndexClient::sdist`].
    pub(super) async fn newer(&self, name: &str, than: &str) -> Result<Option<String>> {
        let listed = self.listed_with(name, is_archive).await?;
        let newest = version_of(name, &choose(name, &listed, None, None)?.name);
        let known = Version::parse(than);
        Ok(newest.filter(|newest| known.is_none_or(|known| *newest > known)).map(|newest| newest.text().to_owned()))
    }

    /// Returns the newest version with a source archive that a range allows; a preview only if there is nothing else.
    ///
    /// # Errors
    /// Same as [`IndexClient::sdist`].
    pub(super) async fn newest_within(&self, name: &str, range: &VersionRange) -> Result<Option<String>> {
        let listed = self.listed_with(name, is_archive).await?;
        let usable = listed.iter().filter(|file| !file.yanked).filter_map(|file| version_of(name, &file.name));
        let newest = usable.filter(|version| range.allows(version)).max_by_key(|it| (it.is_stable(), it.clone()));
        Ok(newest.map(|version| version.text().to_owned()))
    }

    /// Whether an index lists a wheel of a package.
    ///
    /// # Errors
    /// Kind `Machine` if an index does not answer.
    pub(super) async fn has_wheel(&self, name: &str) -> Result<bool> {
        match self.listed_with(name, is_wheel).await {
            Ok(listed) => Ok(listed.iter().any(|file| is_wheel(name, file))),
            Err(error) if error.kind == FailureKind::Suite => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the files of a package, from the first index that has a wanted file of the package. Without such an
    /// index, returns the files from the first index that has any.
    ///
    /// # Errors
    /// Kind `Machine` if no answer has a wanted file and an index does not answer; `Suite` if no index has the package.
    async fn listed_with(&self, name: &str, is_wanted: fn(&str, &ListedFile) -> bool) -> Result<Vec<ListedFile>> {
        let (mut others, mut unanswered) = (Vec::new(), None);
        for address in &self.indexes.addresses {
            match self.listed(address, name).await {
                Ok(found) if found.iter().any(|file| is_wanted(name, file)) => return Ok(found),
                Ok(found) if others.is_empty() => others = found,
                Ok(_) => {}
                Err(error) => unanswered = Some(error),
            }
        }
        match unanswered {
            Some(error) => Err(error),
            None if others.is_empty() => {
                Err(Error::suite(format!("the package index has no `{name}`")).hint("check the name's spelling"))
            }
            None => Ok(others),
        }
    }

    async fn listed(&self, index: &str, name: &str) -> Result<Vec<ListedFile>> {
        let address = format!("{}/{}/", index.trim_end_matches('/'), normalised(name));
        let accepted = "application/vnd.pypi.simple.v1+json, text/html;q=0.2";
        let (base, body) = self.get(&address, Some(accepted)).await?;
        let Some(body) = body else { return Ok(Vec::new()) };
        let text = String::from_utf8_lossy(&body);
        let listed = if text.trim_start().starts_with('{') { from_json(&text)? } else { from_html(&text) };
        Ok(listed
            .into_iter()
            .filter_map(|file| Some(ListedFile { address: base.join(&file.address).ok()?.into(), ..file }))
            .collect())
    }

    async fn bytes(&self, address: &str) -> Result<Vec<u8>> {
        let body = self.get(address, None).await?.1;
        body.ok_or_else(|| Error::machine("the package index lists a file that it does not have"))
    }

    /// Returns the final address and the body; no body if there is nothing at this address. Tries again after failures.
    async fn get(&self, address: &str, accepted: Option<&str>) -> Result<(reqwest::Url, Option<Vec<u8>>)> {
        let mut failed = None;
        for again in 0..TRIES {
            if again > 0 {
                tokio::time::sleep(Duration::from_millis(500 << again)).await;
            }
            match self.once(address, accepted).await {
                Ok(found) => return Ok(found),
                Err(error) => failed = Some(error),
            }
        }
        // Do not quote the address, because it may contain a password.
        let why = failed.unwrap_or_default();
        Err(Error::machine(format!("the package index does not answer: {why}")).hint(
            "repeat the command, which continues; pip's own configuration decides on index, proxy and certificates",
        ))
    }

    async fn once(&self, address: &str, accepted: Option<&str>) -> Result<(reqwest::Url, Option<Vec<u8>>), String> {
        let without_address = |error: reqwest::Error| {
            let error = error.without_url();
            let below = std::error::Error::source(&error).map(|below| format!(": {below}")).unwrap_or_default();
            format!("{error}{below}")
        };
        let mut request = self.http.get(address);
        if let Some(accepted) = accepted {
            request = request.header("Accept", accepted);
        }
        let mut response = request.send().await.map_err(without_address)?;
        let base = response.url().clone();
        if matches!(response.status().as_u16(), 404 | 410) {
            return Ok((base, None));
        }
        if !response.status().is_success() {
            return Err(format!("status {}", response.status().as_u16()));
        }
        let length = response.content_length();
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(without_address)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() as u64 > LARGEST {
                return Err(format!("a file of more than {} MB", LARGEST >> 20));
            }
        }
        if length.is_some_and(|length| length > bytes.len() as u64) {
            return Err("the answer ended early".to_owned());
        }
        Ok((base, Some(bytes)))
    }
}

/// Whether a text is a valid name of a package. Such a name can be part of a path.
pub(super) fn is_package_name(text: &str) -> bool {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    is_end(text.chars().next())
        && is_end(text.chars().next_back())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Normalises a package's name as indexes do to compare names (PEP 503).
pub(super) fn normalised(name: &str) -> String {
    let mut text = String::new();
    for c in name.trim().to_lowercase().chars() {
        let c = if matches!(c, '_' | '.') { '-' } else { c };
        if !(c == '-' && text.ends_with('-')) {
            text.push(c);
        }
    }
    text
}

/// Chooses among the source archives of a package. If a version has several archives, the one with the name `preferred`
/// is chosen or, if there is none, the first.
fn choose<'a>(
    name: &str,
    listed: &'a [ListedFile],
    version: Option<&str>,
    preferred: Option<&str>,
) -> Result<&'a ListedFile> {
    let archives: Vec<(&ListedFile, Version)> =
        listed.iter().filter_map(|file| Some((file, version_of(name, &file.name)?))).collect();
    let Some(version) = version else {
        let usable = archives.iter().filter(|(file, _)| !file.yanked);
        let stable = usable.clone().filter(|(_, version)| version.is_stable()).max_by(|one, other| one.1.cmp(&other.1));
        let any = usable.max_by(|one, other| one.1.cmp(&other.1));
        return stable.or(any).map(|(file, _)| *file).ok_or_else(|| {
            let why = if archives.is_empty() { "has no source archive" } else { "has only yanked source archives" };
            Error::suite(format!("`{name}` {why} in the package index"))
                .hint("give a folder with its sources, or pin a version")
        });
    };
    let wanted = Version::parse(version)
        .ok_or_else(|| Error::usage(format!("`{version}` is not a version")).hint("write it as `name==1.2.3`"))?;
    let of_version: Vec<&ListedFile> =
        archives.iter().filter(|(_, version)| version.is(&wanted)).map(|(file, _)| *file).collect();
    let named = of_version.iter().find(|file| preferred == Some(file.name.as_str()));
    named.or(of_version.first()).copied().ok_or_else(|| {
        Error::suite(format!("`{name}` has no source archive of version {version} in the package index"))
            .hint("name another version, or give a folder with its sources")
    })
}

/// Whether a file is a source archive of this package.
fn is_archive(name: &str, file: &ListedFile) -> bool {
    version_of(name, &file.name).is_some()
}

/// Whether a file is a wheel.
fn is_wheel(_: &str, file: &ListedFile) -> bool {
    std::path::Path::new(&file.name).extension().is_some_and(|extension| extension == "whl")
}

/// Returns the version in the name of a source archive of this package.
fn version_of(name: &str, file: &str) -> Option<Version> {
    let stem = file.strip_suffix(".tar.gz").or_else(|| file.strip_suffix(".zip"))?;
    let place = stem
        .match_indices('-')
        .map(|(place, _)| place)
        .find(|&place| normalised(&stem[..place]) == normalised(name))?;
    Version::parse(&stem[place + 1..])
}

fn from_json(text: &str) -> Result<Vec<ListedFile>> {
    let listed: Value = serde_json::from_str(text)
        .map_err(|error| Error::machine("the package index sent broken JSON").because(error))?;
    let files = listed.get("files").and_then(Value::as_array).into_iter().flatten();
    Ok(files
        .filter_map(|file| {
            Some(ListedFile {
                name: file.get("filename")?.as_str()?.to_owned(),
                address: file.get("url")?.as_str()?.to_owned(),
                sha256: file.pointer("/hashes/sha256").and_then(Value::as_str).map(str::to_owned),
                yanked: !matches!(file.get("yanked"), None | Some(Value::Bool(false) | Value::Null)),
                uploaded: file.get("upload-time").and_then(Value::as_str).and_then(|time| time.get(..10)?.parse().ok()),
            })
        })
        .collect())
}

fn from_html(text: &str) -> Vec<ListedFile> {
    let Ok(anchor) = Regex::new(r"(?is)<a\s([^>]*)>\s*([^<]*?)\s*</a>") else { return Vec::new() };
    let Ok(link) = Regex::new(r#"(?i)href\s*=\s*["']([^"']*)["']"#) else { return Vec::new() };
    anchor
        .captures_iter(text)
        .filter_map(|found| {
            let href = link.captures(&found[1])?[1].replace("&amp;", "&");
            let (address, fragment) = href.split_once('#').unwrap_or((&href, ""));
            Some(ListedFile {
                name: found[2].to_owned(),
                address: address.to_owned(),
                sha256: fragment.strip_prefix("sha256=").map(str::to_owned),
                yanked: found[1].to_lowercase().contains("data-yanked"),
                uploaded: None,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTML: &str = r#"<html><body>
        <a href="../../f/my_pkg-1.0.tar.gz#sha256=aa">my_pkg-1.0.tar.gz</a><br>
        <a data-yanked="broken" href="my_pkg-1.2.tar.gz#sha256=bb">my_pkg-1.2.tar.gz</a>
        <a href="my_pkg-2.0rc1.zip">my_pkg-2.0rc1.zip</a>
        <a href="my_pkg-1.1-py3-none-any.whl">my_pkg-1.1-py3-none-any.whl</a></body></html>"#;

    #[test]
    fn the_newest_stable_archive_that_is_not_yanked_is_chosen() {
        let listed = from_html(HTML);
        assert_eq!(listed.len(), 4);
        assert_eq!(choose("My.Pkg", &listed, None, None).unwrap().sha256.as_deref(), Some("aa"));
        assert_eq!(choose("my-pkg", &listed, Some("1.2.0"), None).unwrap().sha256.as_deref(), Some("bb"));
        let fault =
            |listed: &[ListedFile], version: Option<&str>| choose("my-pkg", listed, version, None).unwrap_err().message;
        assert!(fault(&listed, Some("1.1")).contains("no source archive of version 1.1"));
        assert!(fault(&listed[1..2], None).contains("only yanked"));
        assert!(fault(&listed[3..], None).contains("has no source archive"));
    }

    #[test]
    fn the_archive_that_a_list_names_is_chosen_among_several_of_one_version() {
        let listed = from_html("<a href=\"p-1.0.zip\">p-1.0.zip</a> <a href=\"p-1.0.tar.gz\">p-1.0.tar.gz</a>");
        for (preferred, expected) in
            [(Some("p-1.0.tar.gz"), "p-1.0.tar.gz"), (Some("p-1.0.zip"), "p-1.0.zip"), (Some(""), "p-1.0.zip")]
        {
            assert_eq!(choose("p", &listed, Some("1.0"), preferred).unwrap().name, expected);
        }
    }

    /// Starts an index on this machine that answers every request with this page.
    fn index(page: &'static str) -> String {
        use std::io::{BufRead, BufReader, Write};

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/simple", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let lines = BufReader::new(&stream).lines().map_while(std::io::Result::ok);
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", page.len());
                let _ = (&stream).write_all(format!("{head}{page}").as_bytes());
            }
        });
        address
    }

    #[tokio::test]
    async fn an_index_without_source_archives_does_not_hide_those_of_another_index() {
        let wheels = index("<a href=\"p-2.0-py3-none-any.whl\">p-2.0-py3-none-any.whl</a>");
        let archives = index("<a href=\"p-1.0.tar.gz\">p-1.0.tar.gz</a>");
        let client = |addresses: &[&String]| IndexClient {
            indexes: PipIndexes { addresses: addresses.iter().map(|it| (*it).clone()).collect(), certificates: None },
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        };
        for addresses in [[&wheels, &archives], [&archives, &wheels]] {
            let both = client(&addresses);
            assert_eq!(both.newer("p", "0.5").await.unwrap().as_deref(), Some("1.0"));
            assert!(both.has_wheel("p").await.unwrap());
        }
        let error = client(&[&wheels]).newer("p", "0.5").await.unwrap_err();
        assert!(error.message.contains("has no source archive"), "{error}");
        assert!(!client(&[&archives]).has_wheel("p").await.unwrap());
    }

    #[test]
    fn a_path_is_not_a_name_of_a_package() {
        assert!(["six", "a", "Some.Name_x-1"].iter().all(|name| is_package_name(name)));
        for name in ["", "/home/alice", "../x", "a/b", ".hidden", "a-", "a b", "a\n", "-r"] {
            assert!(!is_package_name(name), "{name}");
        }
    }

    #[test]
    fn a_json_index_is_read() {
        let json = r#"{"files": [{"filename": "p-1.tar.gz", "url": "https://x/p-1.tar.gz", "hashes": {"sha256": "cc"}, "yanked": "why", "upload-time": "2026-03-01T08:00:00.5Z"}]}"#;
        let file = from_json(json).unwrap().remove(0);
        assert_eq!((file.sha256.as_deref(), file.yanked), (Some("cc"), true));
        assert_eq!(file.uploaded, "2026-03-01".parse().ok());
        assert!(from_json("{").is_err());
    }
}
