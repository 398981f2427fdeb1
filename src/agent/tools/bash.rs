//! `bash`: the only tool of mini-swe-agent. A command reports the results by printing a marker and, below it, the
//! results.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Session, ToolFailure, ToolOutput, TypedTool};
use crate::score::parse_answer;

/// Name of the tool.
pub const NAME: &str = "bash";

/// Line that a command prints first to report the results: mini-swe-agent's own marker, on which models have been
/// trained.
pub const MARKER: &str = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";

/// Runs a shell command.
pub struct Bash;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The command, or several lines of them, for bash.
    command: String,
    /// Seconds after which it is stopped.
    #[serde(default)]
    timeout_seconds: Option<f64>,
}

#[async_trait]
impl TypedTool for Bash {
    const NAME: &'static str = NAME;
    const DESCRIPTION: &'static str = "Run a command with bash in the repository's root, in a new shell each time: neither `cd` nor variables last. \
         Shows its exit code, stdout and stderr.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { command, timeout_seconds }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let ran = session.exec(context, &["bash", "-c", &command], timeout_seconds).await?;
        let printed = String::from_utf8_lossy(&ran.exec.stdout);
        let Some(raw) = printed.trim_start().strip_prefix(MARKER).filter(|_| ran.exec.success()) else {
            return Ok(ToolOutput::Observation(ran.show()));
        };
        match parse_answer(raw) {
            Ok(_) => Ok(ToolOutput::Answer(raw.trim().to_owned())),
            Err(what) => Err(ToolFailure::Refused(format!(
                "what was printed below `{MARKER}` was not accepted: {what}; it must be a JSON object such as \
                 {{\"Experiment 1\": {{...}}, \"Experiment 2\": {{...}}}}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MARKER;
    use crate::agent::End;
    use crate::agent::tests::support::{AttemptFixture, call, text};
    use crate::model::Reply;

    fn bash(command: &str) -> Reply {
        call("bash", json!({ "command": command }))
    }

    #[tokio::test]
    async fn each_command_runs_in_a_new_shell_and_a_printed_answer_ends_the_attempt() {
        let report = format!("cat > a.json <<'E'\n{{\"Experiment 1\": {{\"x\": 1}}}}\nE\necho {MARKER}; cat a.json");
        let world =
            AttemptFixture::new(vec![bash("cd /; x=5"), bash("[[ -f main.py ]] && echo here $x"), bash(&report)]).await;
        let attempt = world.react_with("tools=bash").await;
        assert_eq!(attempt.observations(), ["exit code 0, no output", "exit code 0\nstdout:\nhere"]);
        assert_eq!((attempt.end, attempt.answer.as_deref()), (End::Answered, Some(r#"{"Experiment 1": {"x": 1}}"#)));
    }

    #[tokio::test]
    async fn an_unreadable_answer_or_a_failed_submission_is_shown_to_the_model() {
        let broken = format!("echo {MARKER}; echo it works");
        let failed = format!("echo {MARKER}; cat missing.json");
        let attempt = AttemptFixture::new(vec![bash(&broken), bash(&failed)]).await.react_with("tools=bash").await;
        let shown = attempt.observations();
        assert!(shown[0].starts_with("error: what was printed below"), "{}", shown[0]);
        assert!(shown[1].starts_with("exit code 1"), "{}", shown[1]);
        assert_eq!((attempt.end, attempt.answer), (End::GaveUp, None));
    }

    #[tokio::test]
    async fn in_the_last_reply_an_answer_counts_at_any_position_and_no_tool_is_run() {
        for last in [
            text("These are the results:\n```json\n{\"Experiment 1\": {\"x\": 1}}\n```"),
            bash(&format!("touch run.txt; echo {MARKER}; echo '{{\"Experiment 1\": {{\"x\": 1}}}}'")),
        ] {
            let world = AttemptFixture::new(vec![bash("true"), last]).await.limits(|limits| limits.steps = 2);
            let attempt = world.react_with("tools=bash").await;
            assert_eq!((attempt.end, attempt.answer.as_deref()), (End::Answered, Some(r#"{"Experiment 1":{"x":1}}"#)));
            assert!(attempt.last_shown().contains("Your next reply is the last one, and nothing is run for it"));
            assert!(!attempt.dir.path().join("run.txt").exists());
        }
    }
}
