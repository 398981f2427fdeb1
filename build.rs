//! Builds the program that sandboxes start as their first process, which is embedded in the main program so that only
//! it is ever visible in a sandbox. Packs the bundled suite, and the suite that `autoexperiment init` writes, into one
//! archive each, which are embedded as well.
//!
//! An archive depends on names and bytes alone: entries are sorted, and times, owners and modes are the same
//! everywhere.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The folders of a suite.
const SUITE: [&str; 6] = ["papers", "repos", "envs", "commands", "tasks", "wheels"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    fs::copy(sandbox_init(&out)?, out.join("sandbox-init"))?;
    // Cargo runs this in the package's folder. Paths below it are relative, because a target folder may be copied to
    // another checkout, whose own files must be used there.
    pack(Path::new(""), &SUITE, &out.join("suite.tar.gz"))?;
    pack(Path::new("starter"), &["README.md", "papers", "repos", "envs"], &out.join("starter.tar.gz"))
}

/// Builds the sandboxes' program, statically if that works, and returns its path. The builds of one target folder share
/// a folder, so that the program is built once.
fn sandbox_init(out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let variable = |name: &str| std::env::var(name).map_err(|_| format!("no {name}"));
    // A checkout has the package beside this one; what cargo downloads has it elsewhere.
    let beside = PathBuf::from("init");
    let package = if beside.is_dir() { beside } else { PathBuf::from(variable("DEP_AUTOEXPERIMENT_INIT_FOLDER")?) };
    for part in ["src", "Cargo.toml", "build.rs", "profile.toml", "../Cargo.lock"] {
        let path = package.join(part);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let package = std::path::absolute(package)?;
    let target = variable("TARGET")?;
    // OUT_DIR is `target/PROFILE/build/PACKAGE/out`.
    let folder = out.ancestors().nth(4).ok_or("OUT_DIR is not in a target folder")?.join("sandbox-init");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let linked_statically = [flags.as_str(), "-Ctarget-feature=+crt-static"].join("\u{1f}");
    let mut said = String::new();
    for (kind, flags) in [("static", linked_statically.trim_start_matches('\u{1f}')), ("shared", flags.as_str())] {
        let folder = folder.join(kind);
        let done = Command::new(variable("CARGO")?)
            .args(["build", "--profile", "sandbox-init", "--bin", "autoexperiment-init"])
            .arg("--config")
            .arg(package.join("profile.toml"))
            .arg("--manifest-path")
            .arg(package.join("Cargo.toml"))
            // Name the target even if it is this machine's own: only then do the flags apply to the program alone and
            // not to macros.
            .args(["--target", &target, "--target-dir"])
            .arg(&folder)
            .current_dir(&package)
            .env("CARGO_ENCODED_RUSTFLAGS", flags)
            // Clippy checks this workspace's crates itself; its wrapper is not wanted here.
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .env_remove("CLIPPY_ARGS")
            .output()?;
        let built = folder.join(&target).join("sandbox-init/autoexperiment-init");
        if done.status.success() {
            return Ok(built);
        }
        said.push_str(&String::from_utf8_lossy(&done.stderr));
        if kind == "static" {
            let reason =
                String::from_utf8_lossy(&done.stderr).lines().find(|line| line.starts_with("error")).map(str::to_owned);
            let reason = reason.unwrap_or_else(|| done.status.to_string());
            println!(
                "cargo::warning=the sandbox's first process is linked to shared libraries, because a static build failed: {reason}"
            );
        }
    }
    Err(format!("the sandbox's first process was not built:\n{said}").into())
}

/// Packs these files and folders of `root`.
fn pack(root: &Path, parts: &[&str], archive: &Path) -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    for part in parts {
        let path = root.join(part);
        println!("cargo::rerun-if-changed={}", path.display());
        collect(&path, &mut files)?;
    }
    files.sort();
    let mut packed = tar::Builder::new(GzEncoder::new(File::create(archive)?, Compression::best()));
    for file in files {
        let bytes = fs::read(&file)?;
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        packed.append_data(&mut header, file.strip_prefix(root)?, bytes.as_slice())?;
    }
    packed.into_inner()?.finish()?;
    Ok(())
}

/// Collects the files below a path, except those that running the code leaves there.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    if path.is_symlink() {
        return Err(format!("`{}` is a link, which a bundled suite cannot hold", path.display()).into());
    }
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let is_left = entry.file_name() == "__pycache__"
            || (entry.file_name() == "results" && path.parent().is_some_and(|above| above.ends_with("repos")));
        if !is_left {
            collect(&entry.path(), files)?;
        }
    }
    Ok(())
}
