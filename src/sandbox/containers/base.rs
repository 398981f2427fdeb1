//! The base image: a small Debian. Files that could help an attempt to break out or to learn about the machine, and
//! that no experiment needs, are removed: programs with the setuid bit, homes, passwords.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateImageOptionsBuilder, RemoveContainerOptionsBuilder, RemoveImageOptions, TagImageOptionsBuilder,
};
use futures_util::{StreamExt, TryStreamExt};
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::engine::{Engine, KIND, LABEL};
use super::pack::{self, Style, TarArchive};
use super::{USER, registry};
use crate::error::{Error, FailureKind, Result};
use autoexperiment_init::HOME;

/// The image that the base is made from, unless the user names another one.
const DEBIAN: &str = "debian:bookworm-slim";
/// Environment variable that names another image to make the base from. The name should contain a digest if all
/// machines must get the same image.
pub(super) const VARIABLE: &str = "AUTOEXPERIMENT_BASE_IMAGE";
/// Debian's code name for the release that `debootstrap` installs.
const SUITE: &str = "bookworm";

/// Paths that are left out of the base, with everything below them.
const LEFT_OUT: &[&str] = &[
    "boot",
    "dev",
    "home",
    "media",
    "mnt",
    "proc",
    "root",
    "run",
    "srv",
    "sys",
    "tmp",
    "var/cache",
    "var/lib/apt",
    "var/lib/dpkg",
    "var/log",
    "var/tmp",
    "debootstrap",
    ".dockerenv",
    "etc/passwd",
    "etc/passwd-",
    "etc/group",
    "etc/group-",
    "etc/shadow",
    "etc/shadow-",
    "etc/gshadow",
    "etc/gshadow-",
    "etc/nsswitch.conf",
    "etc/hostname",
    "etc/hosts",
    "etc/resolv.conf",
    "etc/machine-id",
    "etc/mtab",
    "etc/ssh",
];

/// The source image named by the user, if any.
pub(super) fn named() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|name| !name.is_empty())
}

/// Makes the base image under this name: from the source image that the user names; without one, from the registry that
/// the user names; without either, from Debian's image or, if that cannot be pulled, by debootstrap.
///
/// # Errors
/// Returns an error of kind `Machine` if the image cannot be pulled from where the user wants it, or if neither
/// Debian's image nor debootstrap works, and one of kind `Infrastructure` if the engine fails.
pub(super) async fn make(engine: &Engine, name: &str) -> Result<()> {
    if let Some(source) = named() {
        let refused = |error| {
            Error::machine(format!("failed to pull `{source}`, which {VARIABLE} names"))
                .because(error)
                .hint("check the name, or unset the variable")
        };
        let is_new = registry::pull(engine, &source).await.map_err(refused)?;
        if is_base(engine, &source).await? {
            // The source image is itself a base made by this program. Use it unchanged, because the base's digest is
            // compared with the digests of other machines' bases.
            let renamed = registry::rename(engine, &source, name, is_new).await;
            return renamed.map_err(|error| engine.failed("name the base image", &error));
        }
        return from_image(engine, &source, name).await;
    }
    if let Some(place) = registry::named() {
        // Do not fall back to another source: a different base would change all images built on it.
        return registry::fetch(engine, &place, name).await.map_err(|error| {
            let there = registry::name_in(&place, name);
            Error::machine(format!("failed to pull `{there}`; {} names that registry", registry::VARIABLE))
                .because(error)
                .hint("push the image there with `autoexperiment image push`, or unset the variable")
        });
    }
    let Err(registry) = registry::pull(engine, DEBIAN).await else { return from_image(engine, DEBIAN, name).await };
    // Making a base takes minutes, so check first that the engine still answers.
    engine.docker.ping().await.map_err(|error| engine.failed("answer", &error))?;
    let folder = tempfile::tempdir().map_err(|error| Error::io("create", &std::env::temp_dir(), error))?;
    debootstrap(folder.path()).await.map_err(|why| {
        Error::machine(format!("failed to make a base image: no registry provided `{DEBIAN}`, and {why}"))
            .because(registry)
            .hint("`apt-get install debootstrap` and build it as root with `autoexperiment image build`, or `docker load` one that was saved elsewhere")
    })?;
    let path = folder.path().to_owned();
    let (body, writing) = pack::stream(move |archive| {
        from_folder(archive, &path)?;
        own_files(archive)
    });
    import(engine, name, &format!("debootstrap-{SUITE}"), body, writing).await
}

/// Whether an image is a base made by this program.
async fn is_base(engine: &Engine, image: &str) -> Result<bool> {
    let about = engine.docker.inspect_image(image).await;
    let about = about.map_err(|error| engine.failed("read the base image", &error))?;
    let labels = about.config.and_then(|config| config.labels).unwrap_or_default();
    Ok(labels.contains_key(LABEL) && labels.get(KIND).is_some_and(|kind| kind == "base"))
}

/// Makes the base from the files of another image.
async fn from_image(engine: &Engine, source: &str, name: &str) -> Result<()> {
    let failed = |error| engine.failed("read the base image", &error);
    let digests = engine.docker.inspect_image(source).await.map_err(failed)?.repo_digests.unwrap_or_default();
    let origin = digests.into_iter().next().unwrap_or_else(|| source.to_owned());
    let body = ContainerCreateBody {
        image: Some(source.to_owned()),
        cmd: Some(vec!["true".into()]),
        labels: Some(engine.labels("build", true)),
        ..ContainerCreateBody::default()
    };
    let id = engine.docker.create_container(None, body).await.map_err(failed)?.id;
    let exported = engine.builder.export_container(&id).map_err(io::Error::other).boxed();
    let from = SyncIoBridge::new(StreamReader::new(exported));
    let (body, writing) = pack::stream(move |archive| {
        from_archive(archive, from)?;
        own_files(archive)
    });
    let made = import(engine, name, &origin, body, writing).await;
    let force = RemoveContainerOptionsBuilder::default().force(true).build();
    engine.builder.remove_container(&id, Some(force)).await.map_err(failed)?;
    made
}

async fn debootstrap(folder: &Path) -> Result<(), String> {
    let mut command = tokio::process::Command::new("debootstrap");
    command.args(["--variant=minbase", SUITE]).arg(folder).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = command.output().await.map_err(|error| format!("`debootstrap` could not be started ({error})"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing").to_owned();
    Err(format!("`debootstrap` failed ({last})"))
}

/// Makes an image from the files that the task `writing` sends through `body`. The image gets its name when all files
/// have arrived, because podman also makes an image from the incomplete files of a killed build.
async fn import(
    engine: &Engine,
    name: &str,
    origin: &str,
    body: impl futures_util::Stream<Item = io::Result<tokio_util::bytes::Bytes>> + Send + 'static,
    writing: tokio::task::JoinHandle<io::Result<()>>,
) -> Result<()> {
    let label = format!("LABEL {LABEL}={} {KIND}=base {LABEL}.origin={origin}", env!("CARGO_PKG_VERSION"));
    let unfinished = format!("{name}-unfinished");
    let failed = |error| engine.failed("import the base image", &error);
    // Put the tag into the repository's name, because podman ignores the separate tag field.
    let options = CreateImageOptionsBuilder::default().from_src("-").repo(&unfinished).changes(vec![label]).build();
    let mut told = Box::pin(engine.builder.create_image(Some(options), Some(bollard::body_try_stream(body)), None));
    while told.try_next().await.map_err(failed)?.is_some() {}
    let written = writing.await.map_err(io::Error::other).and_then(|written| written);
    written.map_err(|error| {
        Error::new(FailureKind::Infrastructure, format!("failed to send the base image to {}", engine.kind.name()))
            .because(error)
    })?;
    let (repo, tag) = name.rsplit_once(':').unwrap_or((name, "latest"));
    let options = TagImageOptionsBuilder::default().repo(repo).tag(tag).build();
    engine.builder.tag_image(&unfinished, Some(options)).await.map_err(failed)?;
    engine.builder.remove_image(&unfinished, None::<RemoveImageOptions>, None).await.map(drop).map_err(failed)
}

fn is_left_out(path: &Path) -> bool {
    LEFT_OUT.iter().any(|left_out| path.starts_with(left_out))
}

fn from_archive(to: &mut TarArchive, from: impl Read) -> io::Result<()> {
    let mut from = tar::Archive::new(from);
    for entry in from.entries()? {
        let mut entry = entry?;
        let path: PathBuf =
            entry.path()?.components().filter(|part| !matches!(part, std::path::Component::CurDir)).collect();
        let kind = entry.header().entry_type();
        let is_plain = kind.is_file() || kind.is_dir() || kind.is_symlink() || kind.is_hard_link();
        if is_plain && !path.as_os_str().is_empty() && !is_left_out(&path) {
            // Remove setuid and setgid, and let only the owner write.
            let mode = entry.header().mode()? & 0o755;
            to.entry(&mut entry, mode)?;
        }
    }
    Ok(())
}

fn from_folder(to: &mut TarArchive, folder: &Path) -> io::Result<()> {
    let style = Style { owner: 0, stamped: false };
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().into())).collect::<io::Result<_>>()?;
    names.sort();
    for name in names.iter().filter(|name| !is_left_out(name)) {
        to.tree_without(&folder.join(name), &Path::new("/").join(name), style, &is_left_out)?;
    }
    Ok(())
}

/// Adds files that every sandbox needs and that the source image may lack.
fn own_files(to: &mut TarArchive) -> io::Result<()> {
    for folder in ["dev", "proc", "sys", "run", "var/lib/dpkg"] {
        to.folder(Path::new(folder), 0)?;
    }
    // `/tmp` is a plain folder of the image. A separate file system mounted there would hide an env below `/tmp`.
    to.folder_with(Path::new("tmp"), 0, 0o1777)?;
    to.link(Path::new("var/tmp"), Path::new("/tmp"))?;
    let passwd = format!("root:x:0:0:root:/:/bin/sh\nsandbox:x:{USER}:{USER}:sandbox:{HOME}:/bin/sh\n");
    to.file(Path::new("etc/passwd"), passwd.as_bytes())?;
    to.file(Path::new("etc/group"), format!("root:x:0:\nsandbox:x:{USER}:\n").as_bytes())?;
    to.file(Path::new("etc/nsswitch.conf"), b"passwd: files\ngroup: files\nhosts: files\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_image_leaves_out_secrets_and_homes_and_keeps_programs() {
        for path in ["etc/shadow", "root/.bashrc", "home", "dev/null", "var/cache/apt/x"] {
            assert!(is_left_out(Path::new(path)), "{path}");
        }
        for path in ["etc/debian_version", "usr/bin/env", "bin", "etc/ld.so.cache", "rooted"] {
            assert!(!is_left_out(Path::new(path)), "{path}");
        }
    }
}
