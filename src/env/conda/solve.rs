//! Solves specifications to exact packages: reads the indexes of the channels and runs the solver.

use std::path::Path;

use rattler_conda_types::{Channel, ChannelUrl, GenericVirtualPackage, RepoDataRecord, Subdir};
use rattler_networking::LazyClient;
use rattler_repodata_gateway::fetch::CacheAction;
use rattler_repodata_gateway::{ChannelConfig, Gateway, SourceConfig};
use rattler_solve::{ChannelPriority, SolveError, SolverImpl, SolverTask, resolvo};
use rattler_virtual_packages::{VirtualPackageOverrides, VirtualPackages};

use super::channels::LocatedChannel;
use super::client::answers;
use super::failure::explained;
use super::progress::{BuildListener, events, forward_events};
use super::settings::Priority;
use super::spec::CondaRequest;
use crate::env::{BuildProgress, OnProgress};
use crate::error::{Error, Result};

/// Settings of a solve.
pub(super) struct SolveOptions<'a> {
    pub(super) client: &'a LazyClient,
    /// Folder where indexes of channels are cached.
    pub(super) cache: &'a Path,
    pub(super) priority: Priority,
    pub(super) offline: bool,
}

/// Returns the packages that satisfy the specifications on a platform, and for each channel, in order, the address
/// where it was found.
///
/// # Errors
/// Kind `Suite` with the solver's explanation if there is no solution; kind `Machine` if a channel does not answer.
pub(super) async fn solve(
    wanted: &CondaRequest,
    yml: &Path,
    platform: Subdir,
    sources: &SolveOptions<'_>,
    on_progress: OnProgress<'_>,
) -> Result<(Vec<RepoDataRecord>, Vec<ChannelUrl>)> {
    let mut urls = Vec::with_capacity(wanted.channels.len());
    for channel in &wanted.channels {
        urls.push(place(channel, sources).await);
    }
    let action = if sources.offline { CacheAction::ForceCacheOnly } else { CacheAction::CacheOrFetch };
    let gateway = Gateway::builder()
        .with_client(sources.client.clone())
        .with_cache_dir(sources.cache)
        .with_channel_config(ChannelConfig {
            default: SourceConfig { cache_action: action, ..SourceConfig::default() },
            ..ChannelConfig::default()
        })
        .finish();
    on_progress(BuildProgress::Task(format!("reading {} channel(s)", urls.len())));
    let (sender, receiver) = events();
    let channels = urls.iter().map(|url| Channel::from_url(url.clone()));
    let query = gateway
        .query(channels, [platform, Subdir::NoArch], wanted.specs.clone())
        .recursive(true)
        .with_reporter(BuildListener::new(sender));
    let names = wanted.channels.iter().map(|channel| format!("`{}`", channel.name)).collect::<Vec<_>>().join(", ");
    let found = forward_events(query.execute(), receiver, on_progress)
        .await
        .map_err(|error| explained(&format!("failed to read the channels {names}"), error))?;

    on_progress(BuildProgress::Task("solving".into()));
    let virtual_packages = assumed(platform)?;
    let specs = wanted.specs.clone();
    let channel_priority = match sources.priority {
        Priority::Strict => ChannelPriority::Strict,
        Priority::Disabled => ChannelPriority::Disabled,
    };
    let solved = tokio::task::spawn_blocking(move || {
        let task =
            SolverTask { virtual_packages, specs, channel_priority, ..found.iter().collect::<SolverTask<'_, _>>() };
        resolvo::Solver.solve(task)
    })
    .await
    .map_err(|error| Error::internal("solving for conda packages was aborted").because(error))?;
    let mut records = solved
        .map_err(|error| match error {
            SolveError::Unsolvable(why) => {
                Error::suite(format!("no packages satisfy the requirements:\n{}", why.join("\n").trim_end()))
                    .hint("change the versions, or add a channel that has them")
            }
            other => Error::suite("failed to solve").because(other),
        })
        .map_err(|error| error.at(yml, None))?
        .records;
    records.sort_by(|one, other| one.package_record.name.cmp(&other.package_record.name));
    if let Some(record) = records.iter().find(|record| record.package_record.sha256.is_none()) {
        return Err(Error::suite(format!("the channel has no sha256 of `{}`", record.identifier))
            .at(yml, None)
            .hint("the env would not be reproducible without it; index the channel again"));
    }
    Ok((records, urls))
}

/// Returns the first of a channel's addresses that answers. If none does, returns the first one, so that the later
/// error names it.
pub(super) async fn place(channel: &LocatedChannel, sources: &SolveOptions<'_>) -> ChannelUrl {
    if channel.urls.len() > 1 && !sources.offline {
        for url in &channel.urls {
            if answers(url, sources.client).await {
                return url.clone();
            }
        }
    }
    channel.urls[0].clone()
}

/// Returns the virtual packages (properties of the system, such as its C library) that a solution may require. For the
/// C library, the Linux kernel and the processor, a fixed baseline is used, so that the lock doesn't depend on the
/// machine that solves. Others, such as graphics processors, are detected on this machine. Variables `CONDA_OVERRIDE_*`
/// take precedence over both.
fn assumed(platform: Subdir) -> Result<Vec<GenericVirtualPackage>> {
    let mut packages = detected()?;
    let baseline = VirtualPackages::baseline_for_platform(platform);
    let given = |name: &str| std::env::var_os(format!("CONDA_OVERRIDE_{name}")).is_some();
    if !given("GLIBC") {
        packages.libc = baseline.libc;
    }
    if !given("LINUX") {
        packages.linux = baseline.linux;
    }
    if !given("ARCHSPEC") {
        packages.archspec = baseline.archspec;
    }
    Ok(packages.into_generic_virtual_packages().collect())
}

/// Detects the virtual packages of this machine.
fn detected() -> Result<VirtualPackages> {
    VirtualPackages::detect(&VirtualPackageOverrides::from_env(), None)
        .map_err(|error| Error::machine("failed to detect this machine's virtual packages").because(error))
}

/// Checks that this machine has the virtual packages that the locked packages need, such as `__glibc >=2.17` or
/// `__cuda`.
///
/// # Errors
/// Kind `Machine`, naming the package and the virtual package that it needs.
pub(super) fn check_machine(records: &[RepoDataRecord]) -> Result<()> {
    use rattler_conda_types::{MatchSpec, Matches, ParseMatchSpecOptions};
    let here: Vec<GenericVirtualPackage> = detected()?.into_generic_virtual_packages().collect();
    for record in records {
        for need in record.package_record.depends.iter().filter(|need| need.starts_with("__")) {
            let Ok(spec) = MatchSpec::from_str(need, ParseMatchSpecOptions::lenient()) else { continue };
            if !here.iter().any(|one| spec.matches(one)) {
                let name = spec.name.as_exact().map(|name| name.as_normalized().to_owned()).unwrap_or_default();
                let has = here
                    .iter()
                    .find(|one| one.name.as_normalized() == name)
                    .map_or("none".to_owned(), |one| one.version.to_string());
                return Err(Error::machine(format!(
                    "`{}` needs {need}, but this machine has {has}",
                    record.identifier
                ))
                .hint("use a newer system or a container, or lock older versions"));
            }
        }
    }
    Ok(())
}
