//! `read_file`: shows a whole file.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Failure, Outcome, READ_LIMIT, Session, Tool, show};
use crate::sandbox::Fault;

/// Shows a whole file.
pub struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file's path.
    path: String,
}

#[async_trait]
impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    const DESCRIPTION: &'static str =
        "Show a file from its beginning, as much of it as fits. See the rest of a long one with inspect_file_lines.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<Outcome, Failure> {
        let path = session.path(context, &path).await?;
        let bytes = context.read(&path, READ_LIMIT).await.map_err(|fault| match fault {
            Fault::Refused(what) if what.contains("not a regular file") => {
                Failure::Refused(format!("{what}; it may be a folder, which `list_files` shows"))
            }
            other => other.into(),
        })?;
        let text = String::from_utf8_lossy(&bytes);
        show::lines(&text, 1, usize::MAX, false).map(Outcome::Observation).map_err(Failure::Refused)
    }
}
