//! Compares the cost of a container with the engine's bare API on the same machine, in alternation: time until it is
//! ready, a command in it, a prepared workspace of a large repo, and what 1,000 attempts leave in the engine.
//! `cargo bench --bench containers`; `-- podman` for podman, `-- growth 1000` to make that many attempts as well.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails should stop")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use autoexperiment::sandbox::{Backend, Command, ContainerBackend, EngineKind, ExecLimits, SandboxLimits, Spec};
use autoexperiment::workspace::{ChangeLimits, LayersKind, Snapshot, Workspace};
use bollard::Docker;
use bollard::exec::StartExecResults;
use bollard::models::{ContainerCreateBody, ExecConfig, HostConfig, ResourcesUlimits};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, ListVolumesOptions, RemoveContainerOptionsBuilder,
    StartContainerOptions,
};
use futures_util::StreamExt;

const TIMES: usize = 50;
/// Size of the prepared repo: number of files, and bytes of each.
const FILES: usize = 4333;
const BYTES: usize = 30_000;
const LIMITS: ExecLimits = ExecLimits {
    wall: Duration::from_mins(1),
    patience: Duration::ZERO,
    grace: Duration::from_secs(1),
    output: 64 * 1024,
};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    let engine_kind = if has("podman") { EngineKind::Podman } else { EngineKind::Docker };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let attempts = words.iter().find_map(|word| word.parse().ok()).unwrap_or(1000);
    runtime.block_on(measure(engine_kind, if has("growth") { attempts } else { 0 }));
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Connects to the same engine directly, without this program's backend.
async fn bare(engine_kind: EngineKind) -> Docker {
    let (variable, usual) = match engine_kind {
        EngineKind::Docker => ("DOCKER_HOST", "unix:///run/docker.sock"),
        EngineKind::Podman => ("CONTAINER_HOST", "unix:///run/podman/podman.sock"),
    };
    let address = std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
    Docker::connect_with_host(&address).unwrap().negotiate_version().await.unwrap()
}

/// Creates and starts a container of the same image through the bare API.
async fn start_bare(docker: &Docker, image: &str) -> String {
    // If podman itself runs confined, it is not allowed to set its own default limits, so set lower ones.
    let limit = |name: &str| ResourcesUlimits { name: Some(name.into()), soft: Some(4096), hard: Some(4096) };
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        cmd: Some(vec!["sleep".into(), "1000".into()]),
        host_config: Some(HostConfig {
            network_mode: Some("none".into()),
            ulimits: Some(vec![limit("nofile"), limit("nproc")]),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let id = docker.create_container(None, body).await.unwrap().id;
    docker.start_container(&id, None::<StartContainerOptions>).await.unwrap();
    id
}

async fn exec_bare(docker: &Docker, id: &str) {
    let config = ExecConfig {
        cmd: Some(vec!["sh".into(), "-c".into(), "echo hi".into()]),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        ..ExecConfig::default()
    };
    let exec = docker.create_exec(id, config).await.unwrap().id;
    let StartExecResults::Attached { mut output, .. } = docker.start_exec(&exec, None).await.unwrap() else {
        unreachable!("it is attached")
    };
    while output.next().await.is_some() {}
}

async fn remove_bare(docker: &Docker, id: &str) {
    let force = RemoveContainerOptionsBuilder::default().force(true).build();
    docker.remove_container(id, Some(force)).await.unwrap();
}

/// Returns the numbers of containers, images and volumes.
async fn objects(docker: &Docker) -> [usize; 3] {
    let all = ListContainersOptionsBuilder::default().all(true).build();
    let every = ListImagesOptionsBuilder::default().all(true).build();
    [
        docker.list_containers(Some(all)).await.unwrap().len(),
        docker.list_images(Some(every)).await.unwrap().len(),
        docker.list_volumes(None::<ListVolumesOptions>).await.unwrap().volumes.unwrap_or_default().len(),
    ]
}

fn repo(folder: &Path) -> PathBuf {
    for number in 0..FILES {
        let path = folder.join(format!("repo/{}/{number}.txt", number % 50));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{number:08}").repeat(BYTES / 8)).unwrap();
    }
    folder.join("repo")
}

async fn measure(engine_kind: EngineKind, growth: usize) {
    let backend = ContainerBackend::open(engine_kind, None).await.expect("no engine answers");
    let docker = bare(engine_kind).await;
    let place = tempfile::tempdir().unwrap();
    let snapshot = Snapshot::take(&repo(place.path()), &place.path().join("cache"), None).unwrap();
    let begun = Instant::now();
    let images = backend.build(&[], &[], Some((snapshot.tree(), snapshot.digest()))).await.unwrap();
    println!("images of a repo of {} MB: {:.1} s", FILES * BYTES / 1_000_000, begun.elapsed().as_secs_f64());
    let image = images.last().unwrap();
    let masked = [(PathBuf::from("1/1.txt"), b"masked".to_vec()), (PathBuf::from("paper.txt"), vec![b'x'; 20_000])];
    let (mut number, mut preparations) = (0, Vec::new());
    let mut workspace = || {
        number += 1;
        let begun = Instant::now();
        let dir = place.path().join(format!("w{number}"));
        let made = Workspace::create(&snapshot, &masked, &dir, LayersKind::Image, None).unwrap();
        preparations.push(begun.elapsed());
        made
    };
    let spec = |workspace: &Workspace| Spec {
        layers: workspace.layers().clone(),
        read_only: Vec::new(),
        sealed: Vec::new(),
        hidden: Vec::new(),
        variables: BTreeMap::new(),
        limits: SandboxLimits::default(),
        gpu: None,
    };
    // Start a sandbox before measuring, because the first start also fills the volume with the sandboxes' init.
    let first = workspace();
    backend.start(&spec(&first)).await.unwrap().destroy().await.unwrap();

    let (mut bares, mut ours, mut bare_execs, mut our_execs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut bare_ends, mut our_ends) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let begun = Instant::now();
        let id = start_bare(&docker, image).await;
        bares.push(begun.elapsed());
        let begun = Instant::now();
        exec_bare(&docker, &id).await;
        bare_execs.push(begun.elapsed());
        let begun = Instant::now();
        remove_bare(&docker, &id).await;
        bare_ends.push(begun.elapsed());

        let one = workspace();
        let begun = Instant::now();
        let mut sandbox = backend.start(&spec(&one)).await.unwrap();
        ours.push(begun.elapsed());
        let begun = Instant::now();
        let done = sandbox.exec(&Command::shell("echo hi"), &LIMITS).await.unwrap();
        our_execs.push(begun.elapsed());
        assert_eq!(done.stdout, b"hi\n");
        sandbox.exec(&Command::shell("echo changed > new.txt; rm 2/2.txt"), &LIMITS).await.unwrap();
        let begun = Instant::now();
        sandbox.destroy().await.unwrap();
        our_ends.push(begun.elapsed());
        assert_eq!(one.changes(&ChangeLimits::default()).unwrap().files.len(), 2);
        one.remove().unwrap();
    }
    let compare = |what: &str, bare: Vec<Duration>, ours: Vec<Duration>| {
        let (bare, ours) = (median(bare), median(ours));
        println!("{what}: bare API {bare:.1} ms, here {ours:.1} ms, ratio {:.2} (medians of {TIMES})", ours / bare);
    };
    compare("container ready, masked files in it", bares, ours);
    compare("`sh -c 'echo hi'`", bare_execs, our_execs);
    compare("changes brought back and container removed", bare_ends, our_ends);
    if growth > 0 {
        let before = objects(&docker).await;
        for _ in 0..growth {
            let one = workspace();
            let mut sandbox = backend.start(&spec(&one)).await.unwrap();
            sandbox.exec(&Command::shell("echo changed > new.txt"), &LIMITS).await.unwrap();
            sandbox.destroy().await.unwrap();
            one.remove().unwrap();
        }
        let after = objects(&docker).await;
        println!("containers, images, volumes: {before:?} before {growth} attempts, {after:?} after");
    }
    println!("workspace prepared: {:.2} ms (median of {})", median(preparations.clone()), preparations.len());
}
