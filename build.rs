//! Packs the bundled suite, and the one that `autoexperiment init` writes, into one archive each: the program holds them.
//!
//! An archive depends on names and bytes alone: entries are sorted, and times, owners and modes are the same everywhere.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The folders of a suite.
const SUITE: [&str; 6] = ["papers", "repos", "envs", "commands", "tasks", "wheels"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or("no CARGO_MANIFEST_DIR")?);
    pack(&here, &SUITE, &out.join("suite.tar.gz"))?;
    pack(&here.join("starter"), &["README.md", "papers", "repos", "envs"], &out.join("starter.tar.gz"))
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

/// The files below a path, without what running the code leaves there.
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
