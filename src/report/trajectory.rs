//! One attempt's trajectory as readable text: messages, tool calls and their results.

use std::fmt::Write as _;

use serde_json::Value;

use super::clean::{clean, middle_cut, short};
use super::end_name;
use crate::agent::{Event, TimedEvent};
use crate::kernel::{CellAuthor, CellState};
use crate::model::Role;
use crate::sandbox::Exit;

/// Whether to use terminal colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Off,
    /// ANSI colours.
    On,
}

/// Kind of a line, which decides its colour (one of the standard eight, which every terminal theme makes readable).
#[derive(Clone, Copy)]
enum LineKind {
    Heading,
    Call,
    Shown,
    Bad,
    Good,
}

impl Colour {
    fn paint(self, kind: LineKind, text: &str) -> String {
        let code = match kind {
            LineKind::Heading => "1",
            LineKind::Call => "36",
            LineKind::Shown => "2",
            LineKind::Bad => "31",
            LineKind::Good => "32",
        };
        match self {
            Self::Off => text.to_owned(),
            Self::On => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}

/// Formats the trajectory as text, one paragraph per event with the seconds since the attempt began. All text from a
/// model, a tool or a repo is cleaned line by line, so that it can't emit escape sequences.
#[must_use]
pub fn trajectory_text(lines: &[TimedEvent], colour: Colour) -> String {
    let mut text = String::new();
    for line in lines {
        event(&mut text, line.at, &line.event, colour);
        text.push('\n');
    }
    text
}

fn event(text: &mut String, at: f64, event: &Event, colour: Colour) {
    let mut heading = |kind: LineKind, what: &str| {
        let _ = writeln!(text, "{}", colour.paint(kind, &format!("[{at:>8.1} s] {what}")));
    };
    match event {
        Event::Started { sample, attempt, agent, model, sandbox, .. } => {
            let model = model.as_deref().map(|model| format!(" with {}", middle_cut(model, 60))).unwrap_or_default();
            let (sample, agent, sandbox) = (short(sample, 80), middle_cut(agent, 40), short(sandbox, 20));
            heading(LineKind::Heading, &format!("{sample} attempt {attempt} by {agent}{model}, sandbox {sandbox}"));
        }
        Event::Message { role, content, .. } => {
            heading(LineKind::Heading, role_name(*role));
            body(text, content, None, colour);
        }
        Event::Reply { step, text: said, reasoning, tool_calls, usage, cost, seconds, cached, .. } => {
            let (input, output) = (usage.input, usage.output);
            let kept = if *cached { ", kept from an earlier run" } else { "" };
            heading(
                LineKind::Heading,
                &format!("step {step}: {input} tokens read, {output} written, ${cost:.4}, {seconds:.1} s{kept}"),
            );
            if let Some(reasoning) = reasoning.as_deref().filter(|it| !it.trim().is_empty()) {
                body(text, reasoning, Some(LineKind::Shown), colour);
                text.push_str("    --\n");
            }
            body(text, said, None, colour);
            for call in tool_calls {
                call_lines(text, &call.name, &call.arguments, colour);
            }
        }
        Event::Observation { step, tool, arguments, content, seconds, .. } => {
            heading(LineKind::Heading, &format!("step {step}: {} took {seconds:.1} s", short(tool, 40)));
            call_lines(text, tool, arguments, colour);
            body(text, content, Some(LineKind::Shown), colour);
        }
        Event::ToolModelCall { tool, text: said, cost, seconds, .. } => {
            heading(LineKind::Heading, &format!("{} asked the model: ${cost:.4}, {seconds:.1} s", short(tool, 40)));
            body(text, said, Some(LineKind::Shown), colour);
        }
        Event::CallFailed { what, cost, seconds, .. } => {
            heading(LineKind::Bad, &format!("the model did not reply: ${cost:.4}, {seconds:.1} s"));
            body(text, what, Some(LineKind::Bad), colour);
        }
        Event::FormatError { step, what } => {
            heading(LineKind::Bad, &format!("step {step}: {}", short(what, 200)));
        }
        Event::Asked { call, kept, messages, .. } => {
            heading(LineKind::Heading, &format!("call {call}: {kept} messages as before, {} new", messages.len()));
            for message in messages {
                let _ =
                    writeln!(text, "    {}", colour.paint(LineKind::Call, &format!("> {}", role_name(message.role))));
                body(text, &message.content, None, colour);
                for call in &message.tool_calls {
                    call_lines(text, &call.name, &call.arguments, colour);
                }
            }
        }
        Event::NotPassed { what } => {
            heading(LineKind::Heading, &format!("not passed to the model: {}", short(what, 200)));
        }
        Event::CallRefused { what } => {
            heading(LineKind::Bad, "the agent asked the model and was refused");
            body(text, what, Some(LineKind::Bad), colour);
        }
        Event::Program { exit, stdout, stderr, seconds } => {
            let kind = if *exit == Exit::Code(0) { LineKind::Heading } else { LineKind::Bad };
            heading(kind, &format!("the program ended: {}, {seconds:.1} s besides waits for the model", how(*exit)));
            body(text, stdout, Some(LineKind::Shown), colour);
            body(text, stderr, Some(LineKind::Shown), colour);
        }
        Event::Try { number, why } => {
            heading(LineKind::Heading, &format!("try {number}"));
            body(text, why.as_deref().unwrap_or_default(), None, colour);
        }
        Event::Forgotten { count, note, .. } => {
            heading(LineKind::Heading, &format!("{count} messages were dropped from the conversation"));
            body(text, note, Some(LineKind::Shown), colour);
        }
        Event::Shortened { message, .. } => {
            heading(LineKind::Heading, &format!("the observation in message {message} was shortened"));
        }
        Event::Cell(cell) => {
            let by = if cell.by == CellAuthor::Prefix { "cell before the agent began" } else { "cell" };
            heading(LineKind::Heading, &format!("{by}: {}, {:.1} s", state_name(cell.state), cell.seconds));
            body(text, &cell.code, Some(LineKind::Call), colour);
            body(text, &cell.output, Some(LineKind::Shown), colour);
        }
        Event::Answer { raw } => {
            heading(LineKind::Good, "answer");
            body(text, raw, None, colour);
        }
        Event::Ended { end, detail } => {
            let kind = if end.is_infrastructure() { LineKind::Bad } else { LineKind::Heading };
            heading(kind, &format!("ended: {}", end_name(*end).replace('_', " ")));
            body(text, detail.as_deref().unwrap_or_default(), None, colour);
        }
        Event::Verification { experiment, exit, seconds, result, stderr, cached } => {
            let kind = if *exit == Exit::Code(0) && result.is_some() { LineKind::Good } else { LineKind::Bad };
            let known = if *cached { ", known from the same code" } else { "" };
            let name = short(experiment, 60);
            heading(kind, &format!("verification of {name}: {}, {seconds:.1} s{known}", how(*exit)));
            if let Some(result) = result {
                body(text, &result.to_string(), None, colour);
            }
            body(text, stderr, Some(LineKind::Shown), colour);
        }
    }
}

fn state_name(state: CellState) -> String {
    match state {
        CellState::Done => "done".to_owned(),
        CellState::Failed => "a shell command failed".to_owned(),
        CellState::Raised => "raised an exception".to_owned(),
        CellState::Running => "still running".to_owned(),
        CellState::Killed => "ended with its session".to_owned(),
        CellState::Ended(code) => format!("ended the session, exit code {code}"),
        CellState::Silent => "no answer".to_owned(),
        CellState::OutOfTime => "the tool time is used up".to_owned(),
    }
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "to the model",
        Role::Assistant => "agent",
        Role::Tool => "to the model, of a call",
    }
}

fn how(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
        Exit::TimedOut => "timed out".to_owned(),
        Exit::DiskFull => "stopped at the disk limit".to_owned(),
    }
}

/// Formats a tool call with one line per argument; multi-line values keep their lines.
fn call_lines(text: &mut String, tool: &str, arguments: &Value, colour: Colour) {
    let _ = writeln!(text, "    {}", colour.paint(LineKind::Call, &format!("> {}", short(tool, 60))));
    let Value::Object(arguments) = arguments else {
        return body(text, &arguments.to_string(), Some(LineKind::Call), colour);
    };
    for (name, value) in arguments {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let joint = if value.contains('\n') { ":\n" } else { ": " };
        body(text, &format!("{name}{joint}{value}"), Some(LineKind::Call), colour);
    }
}

/// Appends the lines of a text, each indented and with control characters escaped.
fn body(text: &mut String, said: &str, kind: Option<LineKind>, colour: Colour) {
    for line in said.trim_end().lines() {
        let line = clean(&line.replace('\t', "    "));
        let line = kind.map_or_else(|| line.clone(), |kind| colour.paint(kind, &line));
        let _ = writeln!(text, "    {line}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent::End;
    use crate::model::{ToolCall, Usage};

    fn lines() -> Vec<TimedEvent> {
        let hostile = "safe\u{1b}[2Jtext\r\u{9b}31m\u{202e}\nsecond\tline";
        let call =
            ToolCall { id: "1".into(), name: "write_file".into(), arguments: json!({"content": "a\nb", "n": 3}) };
        let events = [
            Event::Started {
                sample: "x_0".into(),
                attempt: 2,
                agent: "react".into(),
                model: Some("m\u{1b}]0;t\u{7}".into()),
                sandbox: "local".into(),
                started: None,
            },
            Event::Reply {
                step: 1,
                text: hostile.into(),
                reasoning: Some("think".into()),
                tool_calls: vec![call],
                thoughts: Vec::new(),
                estimated: false,
                cached: false,
                finish: None,
                weights: None,
                tokens: None,
                unanswered: 0,
                usage: Usage { input: 10, output: 5, ..Usage::default() },
                cost: 0.5,
                seconds: 1.5,
                seed: None,
            },
            Event::Observation {
                step: 1,
                call_id: None,
                tool: "command_line".into(),
                arguments: json!({"command": hostile}),
                content: hostile.into(),
                seconds: 0.25,
            },
            Event::Answer { raw: hostile.into() },
            Event::Ended { end: End::Answered, detail: None },
        ];
        events.into_iter().enumerate().map(|(at, event)| TimedEvent { at: at as f64, event }).collect()
    }

    #[test]
    fn a_trajectory_reads_as_a_conversation() {
        insta::assert_snapshot!(trajectory_text(&lines()[..2], Colour::Off), @r"
        [     0.0 s] x_0 attempt 2 by react with m\u{1b}]0;t\u{7}, sandbox local

        [     1.0 s] step 1: 10 tokens read, 5 written, $0.5000, 1.5 s
            think
            --
            safe\u{1b}[2Jtext\r\u{9b}31m\u{202e}
            second    line
            > write_file
            content:
            a
            b
            n: 3
        ");
    }

    #[test]
    fn control_characters_in_untrusted_text_are_escaped() {
        let plain = trajectory_text(&lines(), Colour::Off);
        assert!(plain.chars().all(|c| c == '\n' || !super::super::clean::is_unsafe(c)), "{plain:?}");
        // Remove the program's own colour codes; no other escape sequence is left.
        let mut coloured = trajectory_text(&lines(), Colour::On);
        for code in ["0", "1", "2", "31", "32", "36"] {
            coloured = coloured.replace(&format!("\u{1b}[{code}m"), "");
        }
        assert_eq!(coloured, plain);
    }
}
