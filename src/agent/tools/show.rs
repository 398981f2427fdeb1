//! Formats outputs and files for models, cut to a limit with a note about every cut.
//!
//! The text contains no times and no paths of this machine: equal runs must give equal observations, so that recorded
//! replies can be played back.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use crate::sandbox::{Exec, Exit};

/// Maximum characters of one observation.
pub const OBSERVATION_LIMIT: usize = 20_000;

/// Characters reserved for the status line and the headings of a command's observation.
const HEADINGS: usize = 200;

/// Returns the text. If it is longer than `limit` characters, returns its beginning and end with a note in between.
#[must_use]
pub fn cut_middle(text: &str, limit: usize) -> Cow<'_, str> {
    // A text never has more characters than bytes.
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let length = text.chars().count();
    if length <= limit {
        return Cow::Borrowed(text);
    }
    let note = |cut: usize| format!("\n[... {cut} characters cut ...]\n");
    let room = limit.saturating_sub(note(length).len());
    let head = room / 2;
    let tail = room - head;
    let byte_at = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(byte, _)| byte);
    let (head_end, tail_start) = (byte_at(head), byte_at(length - tail));
    Cow::Owned(format!("{}{}{}", &text[..head_end], note(length - room), &text[tail_start..]))
}

/// Formats a command's outcome: how it ended, then stdout and stderr, each cut in the middle if it is too long.
#[must_use]
pub fn exec(exec: &Exec) -> String {
    exec_as(&exit(exec.exit), exec)
}

/// Same as [`exec`], but `ended` says how the command ended.
#[must_use]
pub(super) fn exec_as(ended: &str, exec: &Exec) -> String {
    let stdout = String::from_utf8_lossy(&exec.stdout);
    let stderr = String::from_utf8_lossy(&exec.stderr);
    let room = OBSERVATION_LIMIT - HEADINGS;
    // If one stream is shorter than half of the limit, the other may use the rest.
    let (out_length, err_length) = (stdout.chars().count(), stderr.chars().count());
    let stdout = cut_middle(&stdout, (room / 2).max(room.saturating_sub(err_length)));
    let stderr = cut_middle(&stderr, (room / 2).max(room.saturating_sub(out_length)));
    let mut text = ended.to_owned();
    if exec.cut > 0 {
        let _ = write!(text, " ({} bytes of output were not kept)", exec.cut);
    }
    for (name, stream) in [("stdout", stdout), ("stderr", stderr)] {
        if !stream.is_empty() {
            let _ = write!(text, "\n{name}:\n{}", stream.strip_suffix('\n').unwrap_or(&stream));
        }
    }
    if exec.stdout.is_empty() && exec.stderr.is_empty() {
        text.push_str(", no output");
    }
    text
}

/// Describes that a command was stopped by its own time limit, with advice.
#[must_use]
pub(super) fn own_limit(limit: Duration) -> String {
    format!(
        "stopped after {} seconds, the time limit of one call. If it needs longer, call it again with a larger \
         `timeout_seconds`. If it should have ended by then, look for a loop that does not end, or try smaller inputs first",
        limit.as_secs_f64()
    )
}

/// Describes how a command ended. A timeout is described as the attempt's time limit.
#[must_use]
pub fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
        Exit::TimedOut => "stopped because the tool time is used up".to_owned(),
        Exit::DiskFull => "stopped because the workspace may not grow any further".to_owned(),
    }
}

/// Formats lines `start` to `end` (from 1, both included) of a file, as many as an observation can hold. A heading
/// names the lines shown, their total and where to continue. `numbered` adds line numbers.
///
/// # Errors
/// Why the range is invalid, as a text for the model.
pub fn lines(text: &str, start: usize, end: usize, numbered: bool) -> Result<String, String> {
    let total = text.lines().count();
    if total == 0 {
        return Ok("the file is empty".to_owned());
    }
    if start == 0 {
        return Err("lines are counted from 1".to_owned());
    }
    if end < start {
        return Err(format!("the last line, {end}, comes before the first one, {start}"));
    }
    if start > total {
        return Err(format!("the file has {total} lines, so there is no line {start}"));
    }
    let room = OBSERVATION_LIMIT - HEADINGS;
    let mut body = String::new();
    let mut used = 0;
    let mut last = start;
    for (index, line) in text.lines().enumerate().take(end.min(total)).skip(start - 1) {
        let line = if numbered { format!("{:>5}  {line}\n", index + 1) } else { format!("{line}\n") };
        let length = line.chars().count();
        if used > 0 && used + length > room {
            break;
        }
        // The first line is shown even if it does not fit; it is then cut.
        body.push_str(&cut_middle(&line, room));
        used += length;
        last = index + 1;
    }
    let more = if last < end.min(total) { format!("; go on with start_line {}", last + 1) } else { String::new() };
    let heading = if start == 1 && last == total {
        format!("all {total} lines:")
    } else {
        format!("lines {start} to {last} of {total}{more}:")
    };
    Ok(format!("{heading}\n{body}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_never_beyond_the_limit() {
        let text: String = (0..500).map(|number| if number % 2 == 0 { '\u{e9}' } else { '\u{1f600}' }).collect();
        let cut = cut_middle(&text, 100);
        assert!(cut.chars().count() <= 100, "{}", cut.chars().count());
        assert!(cut.contains(" characters cut ...]"));
        assert_eq!(cut_middle(&text, 500), text);
        assert!(cut_middle("abc", 0).contains("characters cut"));
    }

    #[test]
    fn stdout_and_stderr_share_the_output_limit_and_a_short_stream_leaves_more_room_for_a_long_one() {
        let exec_of = |stdout: usize, stderr: usize| Exec {
            exit: Exit::Code(1),
            stdout: vec![b'o'; stdout],
            stderr: vec![b'e'; stderr],
            cut: 0,
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
            starved: Duration::ZERO,
            peak_memory: 0,
        };
        let count = |text: &str, letter: char| text.chars().filter(|found| *found == letter).count();
        let both = exec(&exec_of(50_000, 50_000));
        assert!(both.chars().count() <= OBSERVATION_LIMIT);
        assert!(count(&both, 'o') > 9_000 && count(&both, 'e') > 9_000);
        let one = exec(&exec_of(50_000, 100));
        assert!(one.chars().count() <= OBSERVATION_LIMIT && count(&one, 'o') > 19_000 && count(&one, 'e') >= 100);
    }
}
