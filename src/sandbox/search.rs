//! Searches for secrets from inside a sandbox, with the rights of an agent's command.

use std::path::Path;
use std::time::Duration;

use autoexperiment_init::wire::{decode, put_item};
use autoexperiment_init::{SEARCH, shown_to_all};

pub use autoexperiment_init::needles::{NeedleHits, WantedSecrets};

use super::{Command, ExecLimits, Fault, Loss, Sandbox, program};

/// Path of the search program in the workspace. It is started like a command of the agent, so it can read the same
/// files.
const PLACE: &str = "search-of-the-sandbox";
/// Extra time for the search to exit after its own time limit.
const SPARE: Duration = Duration::from_mins(1);

/// Searches all files that a command in the sandbox can read. `wanted` contains the secrets, the time limit, and
/// folders to search in addition to those that every sandbox shows.
///
/// # Errors
/// Returns [`Fault::Refused`] if the search cannot be started or ends early, [`Fault::Lost`] if its answer cannot be
/// decoded, and the sandbox's own faults.
pub async fn search(sandbox: &mut dyn Sandbox, mut wanted: WantedSecrets) -> Result<NeedleHits, Fault> {
    let garbled = |error: std::io::Error| Fault::Lost(Loss::new("the search's answer is garbled").because(error));
    sandbox.write(Path::new(PLACE), program::BYTES).await?;
    // Name the folders that every sandbox shows. In a sandbox without namespaces, the search cannot find them by
    // itself, because their parent folders cannot be listed.
    wanted.roots.extend(shown_to_all().map(Path::to_owned));
    wanted.roots.push(sandbox.workdir().to_owned());
    let mut stdin = Vec::new();
    put_item(&mut stdin, &wanted).map_err(garbled)?;
    let command = Command { stdin, ..Command::shell(&format!("chmod 755 {PLACE} && exec ./{PLACE} {SEARCH}")) };
    let limits = ExecLimits {
        wall: Duration::from_secs(wanted.seconds) + SPARE,
        patience: Duration::ZERO,
        grace: Duration::from_secs(1),
        output: 4 << 20,
    };
    let done = sandbox.exec(&command, &limits).await?;
    if !done.success() {
        let why = String::from_utf8_lossy(&done.stderr);
        return Err(Fault::Refused(format!("the search ended early: {:?} {}", done.exit, why.trim())));
    }
    decode(&done.stdout).map_err(garbled)
}
