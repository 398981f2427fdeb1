//! Container images, named by their content: the base image, the image of an env on top of it, and the image of a repo
//! on top of that. An image is made when it is first needed. From then on, it is found by its name in every container
//! engine that has it.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};

use bollard::models::{ContainerConfig, ContainerCreateBody};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, ContainerArchiveInfoOptionsBuilder, RemoveContainerOptionsBuilder,
};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::builder::{create_alone, upload};
use super::engine::{Engine, KIND, LABEL, OWNER, is_missing};
use super::pack::{self, Style, TarArchive};
use super::{USER, base, libraries, registry};
use crate::error::{Error, FailureKind, Result};
use crate::files::hex;
use crate::sandbox::WORKDIR;
use crate::sandbox::exposed::exposures;

/// Version of the images' content. It is part of their names; increase it when the content changes.
const FORMAT: &str = "1";
/// Prefix of all image names. Without a host in the name, an engine would look in its default registry.
pub(super) const PREFIX: &str = "localhost/autoexperiment";
/// Folder in which the dynamic loader of the base image looks for libraries.
const LIBRARIES: &str = "/usr/lib";

/// Host folders to show, and folders in them to hide.
type ShownFolders<'a> = (&'a [PathBuf], &'a [PathBuf]);

type Cells = std::sync::Mutex<HashMap<String, Arc<OnceCell<String>>>>;

/// The images of one engine, and the names that this process has found so far.
pub(super) struct EngineImages {
    engine: Arc<Engine>,
    known: Cells,
}

impl EngineImages {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, known: Cells::default() }
    }

    /// Forgets which images were found in the engine, so that the engine is asked again.
    pub(super) fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether the engine has the image. Fails if the engine does not answer.
    async fn is_there(&self, name: &str) -> Result<bool> {
        match self.engine.docker.inspect_image(name).await {
            Ok(_) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(self.engine.failed("find an image", &error)),
        }
    }

    /// Makes all images for these folders and, if given, a repo's snapshot. Returns their names, the base first.
    pub(super) async fn build(&self, shown: ShownFolders<'_>, repo: Option<(&Path, &str)>) -> Result<Vec<String>> {
        let mut names = vec![self.base().await?, self.env(shown).await?];
        if let Some((tree, digest)) = repo {
            names.push(self.repo(shown, tree, digest).await?);
        }
        Ok(names)
    }

    /// Makes or finds the base image. If the user names a source image from which to make it, the base image's name
    /// depends on that name.
    pub(super) async fn base(&self) -> Result<String> {
        let named = base::named().map(|source| pack::short(Sha256::new_with_prefix(source)));
        let name = format!("{PREFIX}/base:{FORMAT}{}", named.map(|digest| format!("-{digest}")).unwrap_or_default());
        self.once(
            "base",
            Box::pin(async {
                if !self.is_there(&name).await? {
                    base::make(&self.engine, &name).await?;
                }
                Ok(name.clone())
            }),
        )
        .await
    }

    /// Returns the paths that are not copied into images, because they must stay hidden from agents. A path is the same
    /// on this machine and in the image.
    pub(super) fn left_out(read_only: &[PathBuf], hidden: &[PathBuf]) -> Result<Vec<PathBuf>> {
        // Skip the system's own folders. Only the files of an interpreter are copied from them to an image, so they
        // cannot expose hidden folders.
        let own =
            read_only.iter().map(PathBuf::as_path).filter(|folder| !SYSTEM.iter().any(|one| *folder == Path::new(one)));
        let mut left_out = Vec::new();
        for exposure in exposures(own, hidden) {
            if exposure.is_whole() {
                return Err(exposure.refusal("and hiding it would hide that whole folder"));
            }
            left_out.extend(exposure.at.canonicalize());
            left_out.push(exposure.at);
        }
        Ok(left_out)
    }

    /// Makes or finds the image of an env. It contains the base image, the host's folders `read_only` at the same
    /// paths, and the libraries that programs in these folders need. Each folder is a layer. Interpreters come first,
    /// so that envs with the same interpreter share its layer.
    pub(super) async fn env(&self, (read_only, hidden): ShownFolders<'_>) -> Result<String> {
        let base = self.base().await?;
        let mut folders: Vec<PathBuf> = read_only.to_vec();
        folders.sort();
        folders.dedup();
        let left_out = Self::left_out(read_only, hidden)?;
        self.once(
            &format!("env {folders:?} without {left_out:?}"),
            Box::pin(async {
                let mut folders = expand(folders)
                    .map_err(|error| Error::machine("failed to find the env's interpreter").because(error))?;
                let spare: Arc<Vec<PathBuf>> = Arc::new(spare(&folders).into_iter().chain(left_out).collect());
                folders.sort_by_key(|folder| (folder.is_file(), folder.join("pyvenv.cfg").is_file()));
                let mut top = base;
                for folder in folders {
                    top = self.folder(&top, folder, spare.clone()).await?;
                }
                Ok(top)
            }),
        )
        .await
    }

    /// Makes or finds the image that adds one host folder to the image `below`.
    async fn folder(&self, below: &str, folder: PathBuf, spare: Arc<Vec<PathBuf>>) -> Result<String> {
        self.once(
            &format!("folder {} over {below}", folder.display()),
            Box::pin(async {
                let unreadable = |error| Error::io("read", &folder, error);
                let id = self.identity(below).await?;
                let (real, left_out) = (folder.canonicalize().map_err(unreadable)?, spare.clone());
                let digest = tokio::task::spawn_blocking(move || {
                    let mut hasher = Sha256::new_with_prefix(format!("env {FORMAT}\n{id}\n"));
                    pack::digest_tree(&mut hasher, &real, &|path| is_spare(path, &left_out))?;
                    Ok::<_, io::Error>(pack::short(hasher))
                })
                .await
                .map_err(|error| Error::internal("computing the digest of an image was aborted").because(error))?
                .map_err(unreadable)?;
                let name = format!("{PREFIX}/env:{digest}");
                let (programs, folder) = (Some(folder.as_path()), folder.clone());
                self.layer(&name, "env", below, programs, move |archive| {
                    let style = Style { owner: 0, stamped: false };
                    let is_spare = |path: &Path| is_spare(&Path::new("/").join(path), &spare);
                    archive.tree_without(&folder.canonicalize()?, &folder, style, &is_spare)
                })
                .await?;
                Ok(name)
            }),
        )
        .await
    }

    /// Makes or finds the image of an env with the snapshot at `tree` as its workspace.
    pub(super) async fn repo(&self, shown: ShownFolders<'_>, tree: &Path, digest: &str) -> Result<String> {
        let key = format!("repo {digest} {shown:?}");
        self.once(
            &key,
            Box::pin(async {
                let env = self.env(shown).await?;
                let mut hasher = Sha256::new_with_prefix(format!("repo {FORMAT}\n{}\n", self.identity(&env).await?));
                hasher.update(digest);
                let name = format!("{PREFIX}/repo:{}", pack::short(hasher));
                let tree = tree.to_owned();
                self.layer(&name, "repo", &env, None, move |archive| {
                    let style = Style { owner: USER.into(), stamped: true };
                    archive.tree(&tree, Path::new(WORKDIR), style)
                })
                .await?;
                Ok(name)
            }),
        )
        .await
    }

    /// Runs `make` once per `key` in this process and remembers the image's name; runs it again only after a failure.
    /// The future is boxed, because nested futures become too large for a stack.
    async fn once(&self, key: &str, make: Pin<Box<dyn Future<Output = Result<String>> + Send + '_>>) -> Result<String> {
        let cell = self.known.lock().unwrap_or_else(PoisonError::into_inner).entry(key.to_owned()).or_default().clone();
        cell.get_or_try_init(|| make).await.cloned()
    }

    /// Digests the base's layers. Unlike the image's id, the result is the same in every engine and registry that the
    /// base was sent to.
    pub(super) async fn digest(&self, base: &str) -> Result<String> {
        let about = self.engine.docker.inspect_image(base).await;
        let about = about.map_err(|error| self.engine.failed("find an image", &error))?;
        let layers = about.root_fs.and_then(|files| files.layers).unwrap_or_default();
        match layers.as_slice() {
            [] => Err(Error::new(FailureKind::Infrastructure, format!("the image `{base}` has no layers"))),
            [one] => Ok(one.clone()),
            several => Ok(format!("sha256:{}", hex(&Sha256::digest(several.join("\n"))))),
        }
    }

    /// Returns a text that depends only on an image's content: the digest of the layers for a base, and the name for an
    /// env, because the name already contains a digest of the content.
    async fn identity(&self, name: &str) -> Result<String> {
        if name.contains("/base:") { self.digest(name).await } else { Ok(name.to_owned()) }
    }

    /// Makes an image from the files that `fill` writes, on top of another image, unless it exists. Adds the libraries
    /// that the programs in the folder `programs` need and that neither this folder nor the image `below` has.
    async fn layer(
        &self,
        name: &str,
        kind: &str,
        below: &str,
        programs: Option<&Path>,
        fill: impl FnOnce(&mut TarArchive) -> io::Result<()> + Send + 'static,
    ) -> Result<()> {
        if self.is_there(name).await? {
            return Ok(());
        }
        if let Some(place) = registry::named()
            && registry::fetch(&self.engine, &place, name).await.is_ok()
        {
            return Ok(());
        }
        let body = ContainerCreateBody {
            image: Some(below.to_owned()),
            cmd: Some(vec!["true".into()]),
            labels: Some(self.engine.labels("build", true)),
            ..ContainerCreateBody::default()
        };
        let lock = format!("autoexperiment-build-{}", name.rsplit(':').next().unwrap_or(name));
        let id = create_alone(&self.engine, &lock, body).await?;
        let made = async {
            // Another process may have made the image in the meantime.
            if self.is_there(name).await? {
                return Ok(());
            }
            let mut needed =
                programs.map(|folder| libraries::find_libraries(&libraries::programs(folder))).unwrap_or_default();
            let own = programs.and_then(|folder| folder.canonicalize().ok());
            needed.retain(|library| {
                // Leave out libraries inside the folder: a conda prefix has its own, which other programs must not use.
                !library.canonicalize().is_ok_and(|real| own.as_ref().is_some_and(|own| real.starts_with(own)))
            });
            let libraries = self.missing(&id, needed).await?;
            upload(&self.engine, &id, "/", move |archive| {
                let style = Style { owner: 0, stamped: false };
                for library in libraries {
                    // `library` is usually a symbolic link: use the link's name and the content of its target. Put the
                    // library into a folder where every dynamic loader looks. Do not put it at the same path as on the
                    // host, because that path may be a symbolic link in the image.
                    let place = Path::new(LIBRARIES).join(library.file_name().unwrap_or_default());
                    archive.tree(&library.canonicalize()?, &place, style)?;
                }
                fill(archive)
            })
            .await?;
            self.commit(&id, name, kind).await
        }
        .await;
        let force = RemoveContainerOptionsBuilder::default().force(true).build();
        let removed = self.engine.builder.remove_container(&id, Some(force)).await;
        made?;
        removed.map_err(|error| self.engine.failed("remove a container", &error))
    }

    /// Returns the libraries that an image lacks.
    async fn missing(&self, id: &str, libraries: BTreeSet<PathBuf>) -> Result<Vec<PathBuf>> {
        let mut missing = Vec::new();
        for library in libraries {
            let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let places =
                [format!("{LIBRARIES}/{}-linux-gnu/{name}", std::env::consts::ARCH), format!("{LIBRARIES}/{name}")];
            let mut found = name.starts_with("ld-");
            for place in places.into_iter().chain([library.to_string_lossy().into_owned()]) {
                let asked = ContainerArchiveInfoOptionsBuilder::default().path(&place).build();
                match self.engine.docker.get_container_archive_info(id, Some(asked)).await {
                    Ok(_) => found = true,
                    Err(error) if is_missing(&error) => {}
                    Err(error) => return Err(self.engine.failed("look into an image", &error)),
                }
                if found {
                    break;
                }
            }
            if !found {
                missing.push(library);
            }
        }
        Ok(missing)
    }

    async fn commit(&self, id: &str, name: &str, kind: &str) -> Result<()> {
        let (repo, tag) = name.rsplit_once(':').unwrap_or((name, "latest"));
        // Clear the label that names the owning process, which the image would inherit from the build container.
        // Containers and images with an owner are removed after the owner has ended.
        let labels = format!("LABEL {LABEL}={} {KIND}={kind} {OWNER}=\"\"", env!("CARGO_PKG_VERSION"));
        let options =
            CommitContainerOptionsBuilder::default().container(id).repo(repo).tag(tag).pause(false).changes(&labels);
        let committed = self.engine.builder.commit_container(options.build(), ContainerConfig::default()).await;
        committed.map(drop).map_err(|error| self.engine.failed("make an image", &error))
    }
}

/// Returns the interpreters' package folders that no experiment can import from, because the virtual environments in
/// `folders` are set up to ignore the packages of their interpreters.
fn spare(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut spare = Vec::new();
    for folder in folders {
        let Ok(text) = std::fs::read_to_string(folder.join("pyvenv.cfg")) else { continue };
        let value = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('=').map(str::trim))
        };
        let home = value("home").and_then(|home| Path::new(home).parent());
        if let (Some(home), Some("false")) = (home, value("include-system-site-packages")) {
            let lib = std::fs::read_dir(home.join("lib")).into_iter().flatten().flatten();
            spare.extend(lib.map(|entry| entry.path().join("site-packages")).filter(|path| path.is_dir()));
        }
    }
    spare
}

/// Whether a file or folder is left out because no experiment needs it: packages that no environment sees, Python's own
/// tests, static libraries.
fn is_spare(path: &Path, spare: &[PathBuf]) -> bool {
    let name = |path: Option<&Path>| path.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let is_test = name(Some(path)).as_deref() == Some("test")
        && name(path.parent()).is_some_and(|name| name.starts_with("python3."))
        && name(path.parent().and_then(Path::parent)).as_deref() == Some("lib");
    is_test || path.extension().is_some_and(|extension| extension == "a") || spare.iter().any(|one| path == one)
}

/// Paths of the base image that must not be replaced by an interpreter's folder of the host.
const SYSTEM: [&str; 5] = ["/usr", "/bin", "/lib", "/lib64", "/"];

/// If an env uses the system's own interpreter, its list of folders contains all of `/usr`. Replaces such system
/// folders by the interpreter's own files in them, because only these must be copied.
fn expand(folders: Vec<PathBuf>) -> io::Result<Vec<PathBuf>> {
    let (system, mut folders): (Vec<PathBuf>, Vec<PathBuf>) =
        folders.into_iter().partition(|folder| SYSTEM.iter().any(|system| folder == Path::new(system)));
    if system.is_empty() {
        return Ok(folders);
    }
    let mut found = BTreeSet::new();
    for folder in &folders {
        for program in ["bin/python", "bin/python3"] {
            let Ok(program) = folder.join(program).canonicalize() else { continue };
            let name = program.file_name().unwrap_or_default();
            if program.starts_with("/usr/bin") {
                found.insert(Path::new("/usr/lib").join(name));
                found.insert(program);
            }
        }
    }
    if found.is_empty() {
        return Err(io::Error::other("no interpreter is found in /usr"));
    }
    folders.extend(found.into_iter().filter(|path| path.exists()));
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_leaves_out_packages_of_an_interpreter_if_no_virtual_environment_includes_them() {
        let place = tempfile::tempdir().unwrap();
        let python = place.path().join("python");
        let venv = place.path().join("venv");
        for folder in
            [python.join("lib/python3.12/site-packages/numpy"), python.join("lib/python3.12/test"), venv.clone()]
        {
            std::fs::create_dir_all(folder).unwrap();
        }
        let write = |own: bool| {
            let text = format!("home = {}/bin\ninclude-system-site-packages = {own}\n", python.display());
            std::fs::write(venv.join("pyvenv.cfg"), text).unwrap();
            spare(&[python.clone(), venv.clone()])
        };
        assert!(write(true).is_empty());
        let spare = write(false);
        let at = |name: &str| is_spare(&python.join(name), &spare);
        assert!(at("lib/python3.12/site-packages") && at("lib/python3.12/test") && at("lib/libpython3.12.a"));
        assert!(!at("lib/python3.12/json") && !at("lib/python3.12/site-packages/scipy/test") && !at("bin/python3"));
    }

    #[test]
    fn copying_the_folder_usr_is_refused_if_no_other_folder_links_to_an_interpreter_in_usr() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().to_path_buf();
        assert!(expand(vec!["/usr".into(), folder.clone()]).is_err(), "there is no interpreter");
        assert_eq!(expand(vec![folder.clone()]).unwrap(), [folder]);
    }
}
