//! Determines the environment variables that activating a conda env sets, by activating it once.
//!
//! Bash runs the activation scripts of the packages in an otherwise empty environment without the user's variables, so
//! that the result is the same for everybody. The result is stored with the env.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rattler_conda_types::Subdir;
use rattler_shell::activation::{ActivationVariables, Activator, PathModificationBehavior};
use rattler_shell::environment::EnvironmentSnapshot;
use rattler_shell::process::ProcessLimits;
use rattler_shell::shell::Bash;

use crate::env::prefix::SYSTEM_PATH;
use crate::error::{Error, Result};

/// Limits on time and output of all activation scripts together.
const LIMITS: ProcessLimits = ProcessLimits { timeout: Duration::from_mins(1), output_limit: 4 << 20 };

/// Variables that the shell itself sets; they are ignored.
const SHELL: [&str; 5] = ["_", "PWD", "OLDPWD", "SHLVL", "HOME"];

/// Returns the variables of the activated env: those set by the packages, then those of the `environment.yml`, exactly
/// as written there. Activation scripts see the variables of the `environment.yml`.
///
/// # Errors
/// Kind `Machine` if a script fails, with its output.
pub(super) async fn activate(
    prefix: &Path,
    platform: Subdir,
    variables: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>> {
    let activator = Activator::from_path(prefix, Bash::default(), platform)
        .map_err(|error| Error::machine("failed to read the env's activation scripts").because(error))?;
    // Set the variables of the `environment.yml` in the environment in which the shell starts. The activator would
    // write them into a shell script, where the shell would expand their values.
    let fixed = [("PATH", SYSTEM_PATH), ("HOME", "/nonexistent"), ("LC_ALL", "C.UTF-8")];
    let given = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let start: EnvironmentSnapshot =
        given.filter(|(name, _)| fixed.iter().all(|(one, _)| one != name)).chain(fixed).collect();
    let from = ActivationVariables {
        path: Some(std::env::split_paths(SYSTEM_PATH).collect()),
        path_modification_behavior: PathModificationBehavior::Replace,
        ..ActivationVariables::default()
    };
    let after = Box::pin(activator.run_activation_bounded(from, &start, LIMITS)).await.map_err(|error| {
        Error::machine("the env's activation scripts failed")
            .because(error)
            .hint("they are in `etc/conda/activate.d` of its packages, and need bash")
    })?;
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in after.iter() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        if !SHELL.contains(&name) && start.get(name).and_then(|before| before.to_str()) != Some(value) {
            found.insert(name.to_owned(), value.to_owned());
        }
    }
    for (name, value) in variables {
        found.entry(name.clone()).or_insert_with(|| value.clone());
    }
    Ok(found)
}
