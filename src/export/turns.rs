//! A trajectory as turns: what was said to the agent, and what it replied, each call of a tool with what came of it.
//!
//! Formats that know steps rather than events are made from these.

use serde_json::Value;

use crate::agent::{Event, TimedEvent, conversation};
use crate::model::{Message, Role, Usage};

/// A turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn<'a> {
    /// Something is said to the agent.
    Said(Spoken<'a>),
    /// The agent acts: a reply of its model or, for an agent that is a program, what it did.
    Acted(Act<'a>),
}

/// What is said to the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Spoken<'a> {
    /// Seconds since the attempt began.
    pub at: f64,
    /// As whom.
    pub role: Role,
    /// What.
    pub content: &'a str,
}

/// What the agent does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Act<'a> {
    /// Seconds since the attempt began.
    pub at: f64,
    /// What it says.
    pub text: &'a str,
    /// Reasoning shown apart.
    pub reasoning: Option<&'a str>,
    /// The tools it calls.
    pub calls: Vec<Call<'a>>,
    /// Calls of the model for it: those of its tools, and failed ones, included; 0 for a program's.
    pub model_calls: u32,
    /// Tokens of these.
    pub usage: Usage,
    /// Dollars.
    pub cost: f64,
    /// Seconds waited for the model.
    pub model_seconds: f64,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call<'a> {
    /// The provider's id, or one of ours for a call that was written into the text.
    pub id: String,
    /// The tool's name.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// What the model was shown of it; `None` for a call that was not run.
    pub observation: Option<&'a str>,
    /// Seconds of tool time.
    pub seconds: f64,
}

/// The turns of a trajectory. What is left out is no part of the conversation: format errors, the answer as it was read,
/// the end, verification.
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
                        turns.hear(line.at, message);
                    }
                }
            }
            Event::Message { role: Role::Assistant, content, .. } => {
                turns.begin(Act { at: line.at, text: content, ..Act::default() });
            }
            Event::Message { call_id: Some(id), content, .. } if turns.answer(id, content, 0.0) => {}
            Event::Message { role, content, .. } => turns.say(Spoken { at: line.at, role: *role, content }),
            Event::Reply { text, reasoning, tool_calls, usage, cost, seconds, .. } => {
                let calls = tool_calls.iter().map(|call| Call {
                    id: call.id.clone(),
                    tool: &call.name,
                    arguments: &call.arguments,
                    observation: None,
                    seconds: 0.0,
                });
                turns.begin(Act {
                    at: line.at,
                    text,
                    reasoning: reasoning.as_deref(),
                    calls: calls.collect(),
                    model_calls: 1,
                    usage: *usage,
                    cost: *cost,
                    model_seconds: *seconds,
                });
            }
            Event::Observation { call_id: Some(id), content, seconds, .. } if turns.answer(id, content, *seconds) => {}
            Event::Observation { step, call_id, tool, arguments, content, seconds } => {
                let id = call_id.clone().unwrap_or_else(|| format!("step-{step}-{number}"));
                let call = Call { id, tool, arguments, observation: Some(content), seconds: *seconds };
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

/// Whether a program has written a message anew that stood at the same place before. What the model said it may have
/// put into words of its own; that is no turn.
fn says_again(before: &Message, now: &Message) -> bool {
    before.role == now.role && (now.role == Role::Assistant || before.content.trim() == now.content.trim())
}

/// Turns as they are read: those that are over, and the act that goes on.
#[derive(Default)]
struct Turns<'a> {
    done: Vec<Turn<'a>>,
    act: Option<Act<'a>>,
}

impl<'a> Turns<'a> {
    fn end(&mut self) {
        self.done.extend(self.act.take().map(Turn::Acted));
    }

    fn begin(&mut self, act: Act<'a>) {
        self.end();
        self.act = Some(act);
    }

    fn say(&mut self, spoken: Spoken<'a>) {
        self.end();
        self.done.push(Turn::Said(spoken));
    }

    /// Takes what a program tells its model.
    fn hear(&mut self, at: f64, message: &'a Message) {
        let (role, content) = (message.role, message.content.as_str());
        match (role, &message.tool_call_id) {
            (Role::Assistant, _) => self.begin(Act { at, text: content, ..Act::default() }),
            (Role::Tool, Some(id)) if self.answer(id, content, 0.0) => {}
            _ => self.say(Spoken { at, role, content }),
        }
    }

    /// The act that goes on, or a new one behind what was said.
    fn act(&mut self, at: f64) -> &mut Act<'a> {
        self.act.get_or_insert_with(|| Act { at, ..Act::default() })
    }

    /// Gives the call of this id what came of it; `false` when the act that goes on has none that waits for it.
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
    fn every_call_gets_its_own_observation_and_one_that_was_not_run_the_reason() {
        let calls = json!([{ "id": "a", "name": "x", "arguments": {} }, { "id": "b", "name": "y", "arguments": {} }]);
        let refused = json!({ "event": "message", "role": "tool", "call_id": "b", "content": "not run" });
        let lines = [reply(&calls), observation(Some("a"), "seen"), line(&refused)];
        let turns = turns(&lines);
        let [Turn::Acted(act)] = turns.as_slice() else { panic!("{turns:?}") };
        let seen: Vec<_> = act.calls.iter().map(|call| call.observation.unwrap()).collect();
        assert_eq!(seen, ["seen", "not run"]);
    }

    #[test]
    fn a_call_written_into_the_text_gets_an_id_and_what_its_tool_asked_is_added_up() {
        let usage = json!({ "input": 7, "cached": 0, "output": 1, "reasoning": 0 });
        let asked = json!({ "event": "tool_model_call", "step": 1, "tool": "x", "text": "", "usage": usage, "cost": 0.25, "seconds": 1.0 });
        let lines = [reply(&json!([])), line(&asked), observation(None, "seen")];
        let turns = turns(&lines);
        let [Turn::Acted(act)] = turns.as_slice() else { panic!("{turns:?}") };
        assert_eq!((act.model_calls, act.usage.input, act.cost), (2, 12, 0.75));
        assert_eq!((act.calls[0].id.as_str(), act.calls[0].observation), ("step-1-2", Some("seen")));
    }

    #[test]
    fn what_a_program_of_its_own_tells_its_model_is_said_once_however_often_it_is_sent() {
        let asked = |kept: usize, messages: Value| {
            line(&json!({ "event": "asked", "call": 0, "kept": kept, "messages": messages, "sampling": {} }))
        };
        let message = |role: &str, content: &str| json!({ "role": role, "content": content });
        let result = json!({ "role": "tool", "content": "seen", "tool_call_id": "a" });
        let lines = [
            asked(0, json!([message("system", "s"), message("user", "task")])),
            reply(&json!([{ "id": "a", "name": "x", "arguments": {} }])),
            // The model's words are sent back changed, and the task with them.
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
    fn an_agent_that_is_a_program_acts_without_a_model() {
        let lines = [observation(None, "seen"), observation(None, "again")];
        let turns = turns(&lines);
        let [Turn::Acted(act)] = turns.as_slice() else { panic!("{turns:?}") };
        assert_eq!((act.model_calls, act.calls.len()), (0, 2));
    }
}
