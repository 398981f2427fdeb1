//! `wait`: for code that is still running.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::session;
use crate::agent::Context;
use crate::agent::tools::{Failure, Outcome, Session, Tool, arguments, schema};

/// Waits for running code.
pub struct Wait;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {}

#[async_trait]
impl Tool for Wait {
    fn name(&self) -> &'static str {
        "wait"
    }

    fn description(&self) -> &'static str {
        "Wait for the code that is still running, for 5 more minutes at most."
    }

    fn parameters(&self) -> Value {
        schema::<Arguments>()
    }

    fn waits(&self) -> bool {
        true
    }

    async fn run(
        &self,
        given: Map<String, Value>,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<Outcome, Failure> {
        let Arguments {} = arguments(self, given)?;
        session::wait(context, session).await.map(Outcome::Observation)
    }
}
