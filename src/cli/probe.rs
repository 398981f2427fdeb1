//! `autoexperiment doctor --probe MODEL`: asks one question, and shows what the answer says about the model.

use std::time::{Duration, Instant};

use serde_json::json;

use super::model::GivenPrice;
use super::shared::print;
use crate::error::{Error, FailureKind, Result};
use crate::model::{
    self, Description, Message, ModelAccess, ModelError, ProbeCost, QueryFailed, Reply, Request, Role, Sampling, Tool,
};
use crate::report::clean;

/// Asks the model to call a tool, and prints the outcome.
///
/// # Errors
/// Kind `Provider` if the provider does not answer, `Model` if the model cannot be used; returns the errors of opening
/// a model.
pub async fn probe(
    spec: &str,
    base_url: Option<&str>,
    price: Option<GivenPrice>,
    description: Description,
) -> Result<()> {
    let options = ModelAccess {
        base_url: base_url.map(str::to_owned),
        price: price.map(|price| price.tokens),
        cache_price: price.and_then(|price| price.cache),
        description,
        retries: 1,
        request_timeout: Duration::from_mins(2),
        ..ModelAccess::default()
    };
    let [read, cached, cache_written, written] = model::prices(spec, &options)?;
    let opened = model::open(spec, &options)?;
    let begun = Instant::now();
    let question = question();
    let mut asked = ProbeCost::default();
    let reply = match opened.probe().await {
        Ok(probed) => {
            asked = probed;
            opened.query(&question).await
        }
        Err(failed) => Err(failed),
    };
    let reply = reply.map_err(|QueryFailed { error, usage, cost, .. }| {
        asked += ProbeCost { usage, cost };
        let kind = if matches!(error, ModelError::Unavailable(_)) { FailureKind::Provider } else { FailureKind::Model };
        let cost = asked.describe().map(|told| format!("; {told}")).unwrap_or_default();
        Error::new(kind, format!("`{spec}` does not answer: {error}{cost}"))
            .hint("check the name, the key and the address; `autoexperiment doctor` shows which keys are set")
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    print(&format!("answers:    yes, in {seconds:.1} s\n"))?;
    print(&format!(
        "price:      ${read} read, ${cached} from the cache, ${cache_written} to the cache, ${written} written, per million tokens\n"
    ))?;
    print(&format!(
        "this call:  ${:.6}; {} tokens read, {} written, {} of these for reasoning\n",
        reply.cost, reply.usage.input, reply.usage.output, reply.usage.reasoning
    ))?;
    if let Some(told) = asked.describe() {
        print(&format!("before it:  {told}\n"))?;
    }
    print(&format!("tools:      {}\n", tools(&reply)))?;
    let reasons = if opened.reasons() { "takes an effort or a budget" } else { "takes no effort that is known" };
    print(&format!("reasoning:  {reasons}\n"))?;
    let thoughts = if reply.thoughts.is_empty() { "none that go back to the model" } else { "kept and sent back" };
    print(&format!("thoughts:   {thoughts}\n"))
}

/// Builds a question that a model with tools answers with a call.
fn question() -> Request {
    let number = json!({"type": "integer"});
    Request {
        messages: vec![Message::new(Role::User, "Call the tool `add` with a = 2 and b = 3.")],
        tools: vec![Tool {
            name: "add".to_owned(),
            description: "Adds two whole numbers.".to_owned(),
            parameters: json!({"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}),
        }]
        .into(),
        sampling: Sampling { max_tokens: Some(2000), ..Sampling::default() },
        ..Request::default()
    }
}

/// Describes what the reply says about tool calling.
fn tools(reply: &Reply) -> String {
    match reply.tool_calls.as_slice() {
        [] => format!(
            "the model called no tool; use the setting `protocol=text`. It said: {}",
            clean(&reply.text.chars().take(200).collect::<String>())
        ),
        [call] if call.name == "add" && call.arguments == json!({"a": 2, "b": 3}) => "called as asked".to_owned(),
        calls => format!(
            "called, but not as asked: {}",
            clean(&calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect::<Vec<_>>().join("; "))
        ),
    }
}
