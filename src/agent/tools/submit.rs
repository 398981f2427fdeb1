//! `submit`: the results, which ends the attempt; [`final_answer`] by the name that it has in other tool sets.

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::{Context, Failure, Outcome, Session, Tool, final_answer};

/// The tool's name.
pub const NAME: &str = "submit";

/// Submits the results.
pub struct Submit;

#[async_trait]
impl Tool for Submit {
    fn name(&self) -> &'static str {
        NAME
    }

    fn description(&self) -> &'static str {
        final_answer::FinalAnswer.description()
    }

    fn parameters(&self) -> Value {
        final_answer::FinalAnswer.parameters()
    }

    async fn run(
        &self,
        given: Map<String, Value>,
        _context: &mut Context<'_>,
        _session: &mut Session,
    ) -> Result<Outcome, Failure> {
        final_answer::report(self, &given)
    }
}
