//! `autoexperiment image`: builds, pushes, lists and removes the images that containers start from.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::environment::EnvOptions;
use super::progress::ProgressDisplay;
use super::shared::{PaperOptions, PlaceOptions, SuiteOptions, print, print_json, table};
use crate::error::{Error, Result};
use crate::masked::ready::ReadyPaper;
use crate::run::gpus::Graphics;
use crate::run::machine::{Machine, private};
use crate::run::results::Results;
use crate::run::scratch::Scratch;
use crate::sandbox::{ContainerBackend, EngineKind, SandboxLimits};
use crate::suite::{LoadedPaper, Protocol};

/// Build, push, list and remove container images
///
/// `run --sandbox docker` builds the images it needs. Use this command to build them beforehand or for other machines.
/// Images are named after their content: a base, an env on top of it, a repo on top of that. To move an image without a
/// registry, use `docker save NAME | ssh HOST docker load`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment image build kmeanspp\n  autoexperiment image push registry.example.org/me\n  \
                        autoexperiment image list --engine podman\n  autoexperiment image prune"
)]
pub struct Arguments {
    #[command(subcommand)]
    verb: ImageVerb,
    /// Container engine: `docker` or `podman`.
    #[arg(long, value_name = "ENGINE", default_value = "docker", value_parser = parse_engine, global = true)]
    engine: EngineKind,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    env: EnvOptions,
    #[command(flatten)]
    places: PlaceOptions,
}

#[derive(clap::Subcommand)]
enum ImageVerb {
    /// Build the base and the images of the papers that you name, and print their names.
    #[command(after_help = "Example:\n  autoexperiment image build kmeanspp")]
    Build {
        #[command(flatten)]
        papers: PaperOptions,
    },
    /// Push images to a registry.
    #[command(after_help = "Example:\n  autoexperiment image push registry.example.org/me")]
    Push {
        /// Registry and a path in it, such as `registry.example.org/me`.
        registry: String,
        /// Images to push, as `list` shows them [default: all].
        images: Vec<String>,
    },
    /// List the images, and the volumes that contain the first process of sandboxes.
    #[command(after_help = "Example:\n  autoexperiment image list --engine podman")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove all images and volumes that no container uses. The next run rebuilds what it needs.
    #[command(after_help = "Example:\n  autoexperiment image prune")]
    Prune,
}

fn parse_engine(text: &str) -> Result<EngineKind, String> {
    match text {
        "docker" => Ok(EngineKind::Docker),
        "podman" => Ok(EngineKind::Podman),
        _ => Err("use `docker` or `podman`".to_owned()),
    }
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    let backend = Arc::new(ContainerBackend::open(arguments.engine, None).await?);
    match &arguments.verb {
        ImageVerb::Build { papers } => build(arguments, backend, &papers.all()).await,
        ImageVerb::Push { registry, images } => {
            let store = backend.store();
            let there: Vec<String> = store
                .list()
                .await?
                .into_iter()
                .filter(|object| object.size.is_some() && !object.name.starts_with("sha256:"))
                .map(|object| object.name)
                .collect();
            if let Some(unknown) = images.iter().find(|image| !there.contains(image)) {
                return Err(Error::usage(format!("this program has made no image `{unknown}`"))
                    .hint("`autoexperiment image list` shows what is there"));
            }
            for image in if images.is_empty() { &there } else { images } {
                talk!("pushing {image}");
                print(&format!("{}\n", store.push(image, registry).await?))?;
            }
            Ok(())
        }
        ImageVerb::List { json } => {
            let objects = backend.store().list().await?;
            if *json {
                return print_json(&objects);
            }
            let rows = objects.into_iter().map(|object| {
                let size = object.size.map(|size| format!("{}", size >> 20)).unwrap_or_default();
                let created = object.created.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
                vec![object.kind, object.name, size, created.map(|time| time.to_string()).unwrap_or_default()]
            });
            print(&table(&["kind", "name", "MiB", "made"], &[2], rows))
        }
        ImageVerb::Prune => {
            let removed = backend.store().prune().await?;
            for object in &removed {
                print(&format!("{}\n", object.name))?;
            }
            talk!("removed {} image(s) and volume(s)", removed.len());
            Ok(())
        }
    }
}

async fn build(arguments: &Arguments, backend: Arc<ContainerBackend>, papers: &[String]) -> Result<()> {
    if papers.is_empty() {
        for name in backend.build(&[], &[], None).await?.iter().take(1) {
            print(&format!("{name}\n"))?;
        }
        return Ok(());
    }
    let suite = arguments.suite.open()?;
    let (cache, scratch) = (arguments.places.cache()?, arguments.places.scratch());
    let machine = Machine {
        cache: cache.clone(),
        backend: backend.clone(),
        scratch: Scratch::create(&scratch)?,
        envs: arguments.env.options().open()?,
        offline: arguments.env.options().offline,
        limits: SandboxLimits::default(),
        hidden: [private(&cache, &scratch), vec![suite.root().to_owned()]].concat(),
        results: Results::none(),
        graphics: Graphics::default(),
    };
    let progress = ProgressDisplay::new(false);
    for id in suite.select(papers)? {
        let ready =
            ReadyPaper::prepare(LoadedPaper::load(&suite, &id)?, Protocol::Curtailed, &machine, &progress).await?;
        // Attempts and verification use the same image, unless the paper hides files from agents.
        let mut repos = vec![(ready.shown.tree(), ready.shown.content())];
        if ready.shown.content() != ready.snapshot.content() {
            repos.push((ready.snapshot.tree(), ready.snapshot.content()));
        }
        let mut names = Vec::new();
        for repo in repos {
            names.extend(backend.build(&ready.env.read_only, &machine.hidden, Some(repo)).await?);
        }
        progress.finish();
        let mut printed = BTreeSet::new();
        for name in names.iter().filter(|name| printed.insert(*name)) {
            print(&format!("{id}\t{name}\n"))?;
        }
    }
    Ok(())
}
