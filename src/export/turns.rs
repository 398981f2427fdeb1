//! A trajectory as turns: messages to the agent, and its replies with their tool calls and results.
//!
//! Formats that consist of steps rather than events are built from turns.

use serde_json::Value;

use crate::agent::{CallTokens, Event, TimedEvent, conversation};
use crate::model::{Message, Role, Usage};

/// One turn of a trajectory.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn<'a> {
    /// A message to the agent.
    Said(AgentMessage<'a>),
    /// An action of the agent: a reply of its model or, for an agent without a model, its tool calls.
    Acted(AgentAction<'a>),
}

/// A message to the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentMessage<'a> {
    /// Seconds since the attempt began.
    pub at: f64,
    /// Role of the message.
    pub role: Role,
    /// Text of the message.
    pub content: &'a str,
}

/// An action of the agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentAction<'a> {
    /// Seconds since the attempt began.
    pub at: f64,
    /// Text of the reply.
    pub text: &'a str,
    /// Reasoning that is separate from the text.
    pub reasoning: Option<&'a str>,
    /// The tool calls of the reply.
    pub calls: Vec<TurnCall<'a>>,
    /// Number of model calls behind this action, including failed ones and those made by its tools; 0 without a model.
    pub model_calls: u32,
    /// Tokens of all model calls behind this action.
    pub usage: Usage,
    /// Cost in dollars.
    pub cost: f64,
    /// Token ids and log-probabilities of the reply, if the server returned them.
    pub tokens: Option<&'a CallTokens>,
    /// Seconds of waiting for the model.
    pub model_seconds: f64,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnCall<'a> {
    /// The provider's id, or a generated one if the call was written into the text.
    pub id: String,
    /// The tool's name.
    pub tool: &'a str,
    /// Arguments of the call.
    pub arguments: &'a Value,
    /// The result as shown to the model; `None` for a call that was not run.
    pub observation: Option<&'a str>,
    /// Time that the call took, in seconds, without waiting for a model.
    pub seconds: f64,
}

/// Converts a trajectory to turns. Events outside the conversation are left out: format errors, the parsed answer, the
/// end, verification.
#[must_use]
pub fn turns(lines: &[TimedEvent]) -> Vec<Turn<'_>> {
    let mut turns = Turns::default();
    let mut shown = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        match &line.event {
            Event::Asked { kept, messages, .. } => {
                let before = shown.get(*kept..).unwrap_or_default();
                for (place, message) in messages.iter().enumerate() {
                    if !before.get(place).is_some_and(|before| says_again(before, message)) {
                        turns.add_message(line.at, message);
                    }
                }
            }
            Event::Message { role: Role::Assistant, content, .. } => {
                turns.begin(AgentAction { at: line.at, text: content, ..AgentAction::default() });
            }
            Event::Message { call_id: Some(id), content, .. } if turns.answer(id, content, 0.0) => {}
            Event::Message { role, content, .. } => {
                turns.add_agent_message(AgentMessage { at: line.at, role: *role, content });
            }
            Event::Reply { text, reasoning, tool_calls, tokens, usage, cost, seconds, .. } => {
                let calls = tool_calls.iter().map(|call| TurnCall {
                    id: call.id.clone(),
                    tool: &call.name,
                    arguments: &call.arguments,
                    observation: None,
                    seconds: 0.0,
                });
                turns.begin(AgentAction {
                    at: line.at,
                    text,
                    reasoning: reasoning.as_deref(),
                    calls: calls.collect(),
                    model_calls: 1,
                    usage: *usage,
                    cost: *cost,
                    tokens: tokens.as_ref(),
                    model_seconds: *seconds,
                });
            }
            Event::Observation { call_id: Some(id), content, seconds, .. } if turns.answer(id, content, *seconds) => {}
            Event::Observation { step, call_id, tool, arguments, content, seconds } => {
                let id = call_id.clone().unwrap_or_else(|| format!("step-{step}-{number}"));
                let call = TurnCall { id, tool, arguments, observation: Some(content), seconds: *seconds };
                turns.act(line.at).calls.push(call);
            }
            Event::ToolModelCall { usage, cost, seconds, .. } | Event::CallFailed { usage, cost, seconds, .. } => {
                let act = turns.act(line.at);
                act.model_calls += 1;
                act.usage += *usage;
                act.cost += cost;
                act.model_seconds += seconds;
            }
            _ => {}
        }
        conversation::take(&mut shown, &line.event);
    }
    turns.end();
    turns.done
}

/// Whether a message that an external agent sends repeats the message at the same position in the agent's previous
/// call. Assistant messages always count as repeated, because the agent may have reworded the model's reply.
fn says_again(before: &Message, now: &Message) -> bool {
    before.role == now.role && (now.role == Role::Assistant || before.content.trim() == now.content.trim())
}

/// Turns built so far, with the current action.
#[derive(Default)]
struct Turns<'a> {
    done: Vec<Turn<'a>>,
    act: Option<AgentAction<'a>>,
}

impl<'a> Turns<'a> {
    fn end(&mut self) {
        self.done.extend(self.act.take().map(Turn::Acted));
    }

    fn begin(&mut self, act: AgentAction<'a>) {
        self.end();
        self.act = Some(act);
    }

    fn add_agent_message(&mut self, spoken: AgentMessage<'a>) {
        self.end();
        self.done.push(Turn::Said(spoken));
    }

    /// Adds a message that an external agent sends to its model.
    fn add_message(&mut self, at: f64, message: &'a Message) {
        let (role, content) = (message.role, message.content.as_str());
        match (role, &message.tool_call_id) {
            (Role::Assistant, _) => self.begin(AgentAction { at, text: content, ..AgentAction::default() }),
            (Role::Tool, Some(id)) if self.answer(id, content, 0.0) => {}
            _ => self.add_agent_message(AgentMessage { at, role, content }),
        }
    }

    /// Returns the current action, or starts a new one after a message.
    fn act(&mut self, at: f64) -> &mut AgentAction<'a> {
        self.act.get_or_insert_with(|| AgentAction { at, ..AgentAction::default() })
    }

    /// Sets the result of the call with this id. Returns `false` if the current action has no call with this id, or only
    /// calls that have a result already.
    fn answer(&mut self, id: &str, content: &'a str, seconds: f64) -> bool {
        let mut calls = self.act.iter_mut().flat_map(|act| &mut act.calls);
        let Some(call) = calls.find(|call| call.id == id && call.observation.is_none()) else { return false };
        call.observation = Some(content);
        call.seconds = seconds;
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(event: &Value) -> TimedEvent {
        let mut line = json!({ "at": 1.0 });
        line.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
        serde_json::from_value(line).unwrap()
    }

    fn reply(calls: &Value) -> TimedEvent {
        let usage = json!({ "input": 5, "cached": 0, "output": 2, "reasoning": 0 });
        line(
            &json!({ "event": "reply", "step": 1, "text": "t", "tool_calls": calls, "usage": usage, "cost": 0.5, "seconds": 2.0 }),
        )
    }

    fn observation(call_id: Option<&str>, content: &str) -> TimedEvent {
        let mut event = json!({ "event": "observation", "step": 1, "tool": "x", "arguments": {}, "content": content, "seconds": 1.0 });
        if let Some(id) = call_id {
            event["call_id"] = id.into();
        }
        line(&event)
    }

    #[test]
    fn every_call_has_its_own_observation_or_the_reason_why_it_was_not_run() {
        let calls = json!([{ "id": "a", "name": "x", "arguments": {} }, { "id": "b", "name": "y", "arguments": {} }]);
        let refused = json!({ "event": "message", "role": "tool", "call_id": "b", "content": "not run" });
        let lines = [reply(&calls), observation(Some("a"), "seen"), line(&refused)];
        let turns = turns(&lines);
        let [Turn::Acted(act)] = turns.as_slice() else { panic!("{turns:?}") };
        let seen: Vec<_> = act.calls.iter().map(|call| call.observation.unwrap()).collect();
        assert_eq!(seen, ["seen", "not run"]);
    }

    #[test]
    fn tool_calls_without_an_id_get_one_and_a_turns_cost_includes_model_calls_by_tools() {
        let usage = json!({ "input": 7, "cached": 0, "output": 1, "reasoning": 0 });
        let asked = json!({ "event": "tool_model_call", "step": 1, "tool": "x", "text": "", "usage": usage, "cost": 0.25, "seconds": 1.0 });
        let lines = [reply(&json!([])), line(&asked), observation(None, "seen")];
        let turns = turns(&lines);
        let [Turn::Acted(act)] = turns.as_slice() else { panic!("{turns:?}") };
        assert_eq!((act.model_calls, act.usage.input, act.cost), (2, 12, 0.75));
        assert_eq!((act.calls[0].id.as_str(), act.calls[0].observation), ("step-1-2", Some("seen")));
    }

    #[test]
    fn messages_resent_by_an_external_agent_appear_once() {
        let asked = |kept: usize, messages: Value| {
            line(&json!({ "event": "asked", "call": 0, "kept": kept, "messages": messages, "sampling": {} }))
        };
        let message = |role: &str, content: &str| json!({ "role": role, "content": content });
        let result = json!({ "role": "tool", "content": "seen", "tool_call_id": "a" });
        let lines = [
            asked(0, json!([message("system", "s"), message("user", "task")])),
            reply(&json!([{ "id": "a", "name": "x", "arguments": {} }])),
            // The agent sends the task and the model's reply back with changes.
            asked(1, json!([message("user", "task "), message("assistant", "T"), result])),
            reply(&json!([])),
        ];
        let turns = turns(&lines);
        let [Turn::Said(first), Turn::Said(second), Turn::Acted(act), Turn::Acted(_)] = turns.as_slice() else {
            panic!("{turns:?}")
        };
        assert_eq!((first.content, second.content, act.calls[0].observation), ("s", "task", Some("seen")));
    }

    #[test]
    fn tool_calls_of_an_agent_without_a_model_are_exported_as_a_turn() {
        let lines = [observation(None, "seen"), observation(None, "again")];
        let turns = turns(&lines);
        let [Turn::Acted(act)] = turns.as_slice() else { panic!("{turns:?}") };
        assert_eq!((act.model_calls, act.calls.len()), (0, 2));
    }
}
