//! Tests of specifications and lock files. Tests that need a channel are in `tests/it/conda.rs`.

use std::collections::BTreeMap;
use std::path::Path;

use rattler_conda_types::{PackageRecord, RepoDataRecord, Subdir, Version};
use tempfile::{TempDir, tempdir};

use super::address::url;
use super::lock::{CondaLock, PipPackage, PlatformPackages, channel_name, from_lock, to_lock};
use super::settings::CondaSettings;
use super::spec::CondaRequest;
use super::{digest, replaces_conda};
use crate::env::environment::EnvironmentFile;
use crate::env::{EnvBuildOptions, EnvKind};
use crate::error::{FailureKind, Result};

const YML: &str = "channels: [conda-forge, nodefaults]\ndependencies: [python=3.11, pip: [six]]\n";

fn folder(yml: &str) -> TempDir {
    let dir = tempdir().unwrap();
    std::fs::write(dir.path().join("environment.yml"), yml).unwrap();
    dir
}

fn settings() -> CondaSettings {
    CondaSettings { alias: Some("https://conda.example.org".to_owned()), ..CondaSettings::default() }
}

fn wanted(yml: &str) -> Result<CondaRequest> {
    CondaRequest::from_environment(&EnvironmentFile::read(folder(yml).path())?, &settings())
}

fn record(name: &str, version: &str, address: &str) -> RepoDataRecord {
    let mut record =
        PackageRecord::new(name.parse().unwrap(), version.parse::<Version>().unwrap(), "0".parse().unwrap());
    record.subdir = "linux-64".to_owned();
    record.sha256 = Some([7; 32].into());
    RepoDataRecord {
        package_record: record,
        identifier: format!("{name}-{version}-0.conda").parse().unwrap(),
        url: format!("{address}/linux-64/{name}-{version}-0.conda").parse().unwrap(),
        channel: Some(address.to_owned()),
    }
}

fn six() -> PipPackage {
    PipPackage {
        name: "six".to_owned(),
        version: "1.17.0".to_owned(),
        file: "six-1.17.0-py2.py3-none-any.whl".to_owned(),
        sha256: "ab".to_owned(),
    }
}

/// Writes a lock with packages for one platform into the folder.
fn write_lock(folder: &Path, platform: Subdir) -> PlatformPackages {
    let source = EnvironmentFile::read(folder).unwrap();
    let channels = settings().locate(&source.path, &source.channels).unwrap();
    let places = [channels[0].urls[0].clone()];
    let found = record("python", "3.11.7", "https://conda.example.org/conda-forge");
    let section = PlatformPackages { platform, records: vec![to_lock(found, &channels, &places)], pip: vec![six()] };
    let lock = CondaLock { channels: vec!["conda-forge".to_owned()], sections: vec![section.clone()] };
    lock.write(folder, &source).unwrap();
    section
}

#[test]
fn pip_is_added_if_the_environment_has_pip_lines() {
    let names = |yml: &str| -> Vec<String> {
        wanted(yml).unwrap().specs.iter().map(|spec| spec.name.as_exact().unwrap().as_normalized().to_owned()).collect()
    };
    assert_eq!(names("dependencies: [python, pip: [six]]\n"), ["python", "pip"]);
    assert_eq!(names("dependencies: [pip=24, python, pip: [six]]\n"), ["pip", "python"]);
    assert_eq!(names("dependencies: [python]\n"), ["python"]);
}

#[test]
fn a_channel_named_by_a_specification_is_located_and_comes_last() {
    let found = wanted("channels: [conda-forge, nodefaults]\ndependencies: ['other::six']\n").unwrap();
    let names: Vec<&str> = found.channels.iter().map(|channel| channel.name.as_str()).collect();
    assert_eq!(names, ["conda-forge", "other"]);
    let channel = found.specs[0].channel.as_ref().unwrap();
    assert_eq!(channel.base_url.as_str(), "https://conda.example.org/other/");
}

#[test]
fn an_invalid_specification_is_an_error_with_its_line() {
    let error = wanted("dependencies:\n  - python\n  - numpy >=>2\n").unwrap_err();
    assert_eq!((error.kind, error.place.unwrap().1), (FailureKind::Suite, Some(3)));
    assert!(error.message.contains("numpy >=>2"));
}

#[test]
fn a_lock_stores_channel_names_and_is_read_back_unchanged() {
    let dir = folder(YML);
    let section = write_lock(dir.path(), Subdir::Linux64);
    let text = std::fs::read_to_string(CondaLock::path(dir.path())).unwrap();
    assert!(text.contains("channel:///conda-forge/linux-64/python-3.11.7-0.conda"), "{text}");
    assert!(!text.contains("example.org"), "{text}");
    let source = EnvironmentFile::read(dir.path()).unwrap();
    let lock = CondaLock::read(dir.path(), &source).unwrap();
    let read = lock.section(Subdir::Linux64, dir.path(), &source).unwrap();
    assert_eq!(read.pip, section.pip);
    assert_eq!(read.records[0].package_record.sha256, section.records[0].package_record.sha256);
    assert_eq!(digest(read, &BTreeMap::new()), digest(&section, &BTreeMap::new()));
    assert_eq!(channel_name(&read.records[0]), Some("conda-forge"));
    let places = BTreeMap::from([("conda-forge".to_owned(), url("file:///srv/mirror/conda-forge").unwrap())]);
    let here = from_lock(read.records[0].clone(), &places, dir.path()).unwrap();
    assert_eq!(here.url.as_str(), "file:///srv/mirror/conda-forge/linux-64/python-3.11.7-0.conda");
    let error = lock.section(Subdir::LinuxAarch64, dir.path(), &source).unwrap_err();
    assert!(error.message.contains("not locked for linux-aarch64"), "{error}");
}

#[test]
fn a_channel_of_several_parts_keeps_its_name() {
    let channels = settings().locate(Path::new("x"), &[("conda-forge/label/dev".to_owned(), 1)]).unwrap();
    let places = [channels[0].urls[0].clone()];
    let locked = to_lock(record("a", "1", "https://conda.example.org/conda-forge/label/dev"), &channels, &places);
    assert_eq!(channel_name(&locked), Some("conda-forge/label/dev"));
}

#[test]
fn the_error_for_an_unusable_conda_lock_suggests_the_command_that_locks_again() {
    let dir = folder(YML);
    let check = |words: &str| {
        let source = EnvironmentFile::read(dir.path()).unwrap();
        let error = CondaLock::read(dir.path(), &source).unwrap_err();
        assert_eq!(error.kind, FailureKind::Suite);
        assert!(error.message.contains(words), "{}", error.message);
        assert_eq!(error.hint.unwrap(), format!("type `autoexperiment env lock --env conda {}`", source.id));
    };
    check("no readable lock file");
    write_lock(dir.path(), Subdir::Linux64);
    std::fs::write(dir.path().join("environment.yml"), YML.replace("3.11", "3.12")).unwrap();
    check("was changed after it was locked");
    std::fs::write(CondaLock::path(dir.path()), "autoexperiment: 3\n").unwrap();
    check("");
    std::fs::write(CondaLock::path(dir.path()), "autoexperiment: {format: 9, environment: x, pip: {}}\n").unwrap();
    check("format 9");
}

#[test]
fn the_digest_covers_the_installed_packages() {
    let section = |version: &str| PlatformPackages {
        platform: Subdir::Linux64,
        records: vec![record("python", version, "https://a.example.org")],
        pip: vec![six()],
    };
    let none = BTreeMap::new();
    assert_eq!(digest(&section("3.11.7"), &none), digest(&section("3.11.7"), &none));
    assert_ne!(digest(&section("3.11.7"), &none), digest(&section("3.11.8"), &none));
    let some = BTreeMap::from([("A".to_owned(), "b".to_owned())]);
    assert_ne!(digest(&section("3.11.7"), &none), digest(&section("3.11.7"), &some));
}

#[test]
fn a_package_from_both_conda_and_pip_is_detected() {
    let records =
        vec![record("python", "3.11.7", "https://a.example.org"), record("six", "1.16", "https://a.example.org")];
    let mut section = PlatformPackages { platform: Subdir::Linux64, records, pip: vec![six()] };
    assert!(replaces_conda(&section));
    section.records.pop();
    assert!(!replaces_conda(&section));
}

#[test]
fn an_env_is_locked_for_the_backends_that_already_have_a_lock_and_otherwise_for_venv() {
    let dir = folder(YML);
    let options = EnvBuildOptions::default();
    let names = |options: &EnvBuildOptions| -> Vec<&str> {
        options.to_lock(dir.path()).unwrap().iter().map(|backend| backend.name()).collect()
    };
    assert_eq!(names(&options), ["venv"]);
    write_lock(dir.path(), Subdir::Linux64);
    assert_eq!(names(&options), ["conda"]);
    std::fs::write(dir.path().join("venv.lock"), "").unwrap();
    assert_eq!(names(&options), ["conda", "venv"]);
    assert_eq!(names(&EnvBuildOptions { kind: EnvKind::Venv, ..EnvBuildOptions::default() }), ["venv"]);
}

#[test]
fn envs_that_a_venv_cannot_provide_are_locked_for_conda() {
    let dir = folder("dependencies: [python, gcc_linux-64]\n");
    let backends = EnvBuildOptions::default().to_lock(dir.path()).unwrap();
    assert_eq!(backends.iter().map(|backend| backend.name()).collect::<Vec<_>>(), ["conda"]);
}
