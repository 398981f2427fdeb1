//! `final_answer`, called `submit` in other tool sets: reports the results and ends the attempt.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{AnyTool, Context, Session, ToolFailure, ToolOutput, schema, signature_of};
use crate::score::parse_answer;

/// Reports the results of all experiments.
pub(super) struct ReportResults {
    /// Name of the tool for the model.
    pub name: &'static str,
}

/// The tool with the name `final_answer`, as in the original benchmark.
pub(super) static FINAL_ANSWER: ReportResults = ReportResults { name: "final_answer" };
/// The tool with the name `submit`, as in the other tool sets.
pub(super) static SUBMIT: ReportResults = ReportResults { name: "submit" };

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The results of all experiments, a JSON object written as text: {"Experiment 1": {...}, "Experiment 2": {...}}.
    #[expect(dead_code, reason = "only its schema is used: the answer is also taken in other shapes")]
    answer: String,
}

/// Extracts the answer from the arguments of a call: the argument `answer`, as text or as an object. Without this
/// argument, all arguments together are the answer if one of them is named like an experiment.
#[must_use]
pub fn answer(arguments: &Map<String, Value>) -> Option<String> {
    match arguments.get("answer") {
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => Some(other.to_string()),
        None if arguments.keys().any(|key| key.to_lowercase().starts_with("experiment")) => {
            Some(Value::Object(arguments.clone()).to_string())
        }
        None => None,
    }
}

#[async_trait]
impl AnyTool for ReportResults {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        "Report the results of all experiments and finish. Nothing can be done afterwards."
    }

    fn parameters(&self) -> Value {
        schema::<Arguments>()
    }

    async fn call(
        &self,
        given: Map<String, Value>,
        _context: &mut Context<'_>,
        _session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let Some(raw) = answer(&given) else {
            let expected = signature_of(&self.parameters());
            return Err(ToolFailure::Arguments(format!("`{}` needs its `answer`: {expected}", self.name)));
        };
        match parse_answer(&raw) {
            Ok(_) => Ok(ToolOutput::Answer(raw)),
            Err(what) => Err(ToolFailure::Arguments(format!(
                "the answer was not accepted: {what}; it must be a JSON object such as \
                 {{\"Experiment 1\": {{...}}, \"Experiment 2\": {{...}}}}"
            ))),
        }
    }
}
