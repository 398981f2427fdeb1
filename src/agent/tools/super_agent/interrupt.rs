//! `interrupt`: code that is still running.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::session;
use crate::agent::Context;
use crate::agent::tools::{Failure, Outcome, Session, Tool, arguments, schema};

/// Interrupts running code.
pub struct Interrupt;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {}

#[async_trait]
impl Tool for Interrupt {
    fn name(&self) -> &'static str {
        "interrupt"
    }

    fn description(&self) -> &'static str {
        "Interrupt the code that is still running, as Ctrl-C does. Variables are kept where it stops."
    }

    fn parameters(&self) -> Value {
        schema::<Arguments>()
    }

    async fn run(
        &self,
        given: Map<String, Value>,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<Outcome, Failure> {
        let Arguments {} = arguments(self, given)?;
        session::interrupt(context, session).await.map(Outcome::Observation)
    }
}
