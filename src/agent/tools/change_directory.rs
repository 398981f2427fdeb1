//! `change_directory`: where commands run and relative paths begin, kept from step to step.

use std::path::Path;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Failure, Outcome, Session, Tool};

/// Changes the current directory.
pub struct ChangeDirectory;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The folder, relative to the current directory.
    path: String,
}

#[async_trait]
impl Tool for ChangeDirectory {
    const NAME: &'static str = "change_directory";
    const DESCRIPTION: &'static str = "Change the current directory for all later commands and relative paths.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<Outcome, Failure> {
        let target = session.path(context, &path).await?;
        // A folder named `-` is no way back.
        let target = Path::new(".").join(target);
        let target = target.to_string_lossy();
        // The workspace's root is where a relative path begins, whatever the current directory is.
        let root = Session::default();
        let script = "cd -- \"$1\" && pwd -P && echo .";
        let exec = root.exec(context, &["sh", "-c", script, "sh", &target], None).await?.exec;
        if !exec.success() {
            return Err(Failure::Refused(format!("cannot change to `{path}`: no such folder, or no way into it")));
        }
        let printed = String::from_utf8_lossy(&exec.stdout).into_owned();
        // The dot keeps a name's own line breaks at its end apart from the shell's.
        let directory = printed.strip_suffix("\n.\n").unwrap_or(&printed);
        session.directory = directory.into();
        Ok(Outcome::Observation(format!("the current directory is now {directory}")))
    }
}
