//! `execute`: Python code in a session that lasts.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::session;
use crate::agent::Context;
use crate::agent::tools::{Failure, Outcome, Session, Tool, arguments, schema};

/// Runs Python code.
pub struct Execute;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The code, one or more lines.
    code: String,
}

#[async_trait]
impl Tool for Execute {
    fn name(&self) -> &'static str {
        "execute"
    }

    fn description(&self) -> &'static str {
        "Run Python code in a session that keeps its variables from call to call, as a notebook does: the value of a last expression is shown, `!command` runs a shell command, `%cd folder` changes the folder. A call returns after 5 minutes at most; then `wait` or `interrupt`."
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
        let Arguments { code } = arguments(self, given)?;
        session::execute(&code, context, session).await.map(Outcome::Observation)
    }
}
