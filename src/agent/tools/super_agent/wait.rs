//! `wait`: for code that is still running.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::session;
use crate::agent::Context;
use crate::agent::tools::{Failure, Outcome, Session, Tool};

/// Waits for running code.
pub struct Wait;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {}

#[async_trait]
impl Tool for Wait {
    const NAME: &'static str = "wait";
    const DESCRIPTION: &'static str = "Wait for the code that is still running, for 5 more minutes at most.";
    const WAITS: bool = true;
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments {}: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<Outcome, Failure> {
        session::wait(context, session).await.map(Outcome::Observation)
    }
}
