//! Progress on stderr: a bar with the last events on a terminal, plain lines elsewhere; and as JSON on stdout for
//! machines.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use super::events;
use crate::agent::LiveUsage;
use crate::env::BuildProgress as EnvProgress;
use crate::report::{clean, duration, outcome, wrap_to};
use crate::run::AttemptRecord;
use crate::run::event::{Observer, RunEvent, Stage};

/// Minimum time between lines while attempts run, if stderr is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Maximum number of running attempts, and of recently finished attempts, that are shown below the bar.
const LAST: usize = 4;

/// Shows a run's events.
pub struct ProgressDisplay {
    state: Mutex<DisplayState>,
    terminal: bool,
    json: bool,
}

struct DisplayState {
    bar: ProgressBar,
    counts: ProgressCounts,
    /// The last stage, by which repeated events of the same stage are recognised. A message about an env sets it to
    /// `None`, so that the next event's stage is printed again.
    stage: Option<Stage>,
    /// Description of the current activity.
    doing: String,
    /// Whether the bar shows the steps of building an env.
    steps: bool,
    last_line: Instant,
    last: VecDeque<String>,
    running: RunningAttempts,
}

/// The running attempts.
type RunningAttempts = Arc<Mutex<Vec<RunningAttempt>>>;

/// A running attempt.
struct RunningAttempt {
    /// Name of the attempt in the display; no two running attempts have the same name.
    name: String,
    begun: Instant,
    so_far: Arc<LiveUsage>,
}

/// Names an attempt in the display.
fn attempt_name(sample: &str, attempt: u32, agent: &str) -> String {
    format!("{}.{attempt} {}", clean(sample), clean(agent))
}

/// Number of columns of the terminal.
fn columns() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0).max(20))
}

/// Indents a line by two columns and wraps it between words, so that no number is broken.
fn indented(line: &str, width: usize) -> String {
    format!("  {}", wrap_to(line, "      ", width - 2))
}

/// Returns a line for each of the attempts that have been running longest.
fn running_lines(running: &RunningAttempts, width: usize) -> String {
    let running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    for one in running.iter().take(LAST) {
        let (steps, took) = (one.so_far.steps(), duration(one.begun.elapsed().as_secs_f64()));
        let doing = if steps == 0 { "running".to_owned() } else { format!("step {steps}") };
        let line = format!("{}: {doing}, {took}, ${:.2}", one.name, one.so_far.cost());
        let _ = write!(text, "\n{}", indented(&line, width));
    }
    if running.len() > LAST {
        let _ = write!(text, "\n  and {} more", running.len() - LAST);
    }
    text
}

#[derive(Default)]
struct ProgressCounts {
    total: usize,
    finished: usize,
    running: usize,
    passed: usize,
    failed: usize,
    infrastructure: usize,
    stopped: usize,
    /// Number of times that an attempt was tried again.
    retried: usize,
    cost: f64,
    /// Number of attempts that ended before this session.
    before: usize,
    begun: Option<Instant>,
}

impl ProgressDisplay {
    /// Creates an observer; if `quiet`, it shows warnings only.
    pub fn new(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        let bar = if terminal { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if terminal {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        let state = DisplayState {
            bar,
            counts: ProgressCounts::default(),
            stage: None,
            doing: String::new(),
            steps: false,
            last_line: Instant::now(),
            last: VecDeque::new(),
            running: RunningAttempts::default(),
        };
        Self { state: Mutex::new(state), terminal: terminal || quiet, json: false }
    }

    /// Creates an observer that, if `json`, also prints every event on stdout, one JSON object per line.
    pub(super) fn with_json(json: bool) -> Self {
        Self { json, ..Self::new(false) }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.lock().bar.finish_and_clear();
    }

    fn lock(&self) -> MutexGuard<'_, DisplayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for ProgressDisplay {
    fn on(&self, event: RunEvent) {
        let mut state = self.lock();
        if self.json {
            events::print_event(&event);
        }
        match event {
            RunEvent::Stage(stage) => {
                state.end_steps();
                let text = stage.to_string();
                let is_new = state.stage.replace(stage.clone()).is_none_or(|last| !last.is_same(&stage));
                let is_due = stage.total > 0 && state.last_line.elapsed() > LINE_EVERY;
                if !self.terminal && (is_new || is_due) {
                    state.last_line = Instant::now();
                    talk!("{}", clean(&text));
                }
                state.bar.set_message(clean(&text));
                state.doing = text;
            }
            RunEvent::Env(EnvProgress::Task(stage)) => {
                state.end_steps();
                if !self.terminal {
                    talk!("  {}", clean(&stage));
                }
                state.bar.set_message(clean(&stage));
                state.stage = None;
                state.doing = stage;
            }
            RunEvent::Env(EnvProgress::Step(done, total)) => {
                if !state.steps
                    && let Ok(style) = ProgressStyle::with_template("{bar:16} {pos}/{len}  {msg}  {elapsed}")
                {
                    state.bar.set_style(style);
                    state.steps = true;
                }
                state.bar.set_length(total);
                state.bar.set_position(done);
            }
            RunEvent::Env(EnvProgress::Detail(detail)) => {
                let text = format!("{}: {}", clean(&state.doing), clean(&detail));
                state.bar.set_message(text);
            }
            RunEvent::Env(EnvProgress::Notice(text)) | RunEvent::Warning(text) => {
                let text = clean(&text);
                state.bar.suspend(|| talk!("warning: {text}"));
            }
            RunEvent::Planned { total, finished } => {
                state.counts.total = total;
                state.counts.finished = finished;
                state.counts.before = finished;
                state.counts.begun = Some(Instant::now());
                state.steps = false;
                state.bar.set_length(total as u64);
                state.bar.set_position(finished as u64);
                if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}  {elapsed}\n{msg}{running}") {
                    // Draw the lines of the running attempts with every tick, to keep their seconds up to date.
                    let running = Arc::clone(&state.running);
                    state.bar.set_style(style.with_key(
                        "running",
                        move |_: &ProgressState, to: &mut dyn fmt::Write| {
                            let _ = to.write_str(&running_lines(&running, columns()));
                        },
                    ));
                }
                if !self.terminal {
                    let earlier = if finished > 0 { format!(", {finished} finished before") } else { String::new() };
                    talk!("{total} attempts{earlier}");
                }
                state.show();
            }
            RunEvent::Started { agent, sample, attempt, so_far } => {
                state.counts.running += 1;
                let name = attempt_name(&sample, attempt, &agent);
                state.going().push(RunningAttempt { name, begun: Instant::now(), so_far });
                state.show();
            }
            RunEvent::Retried { agent, sample, attempt, why } => {
                state.counts.running = state.counts.running.saturating_sub(1);
                let name = attempt_name(&sample, attempt, &agent);
                let text = format!("{name}: trying again: {}", clean(&why));
                state.ended(&name);
                state.counts.retried += 1;
                state.bar.suspend(|| talk!("{text}"));
                state.show();
            }
            RunEvent::Finished(record) => {
                state.counts.add(&record);
                state.ended(&attempt_name(&record.sample, record.attempt, &record.agent));
                state.keep(&record);
                state.bar.inc(1);
                state.show();
                let last = state.counts.finished == state.counts.total;
                if !self.terminal && (last || state.last_line.elapsed() > LINE_EVERY) {
                    state.last_line = Instant::now();
                    talk!("{}/{}  {}", state.counts.finished, state.counts.total, state.counts.line());
                }
            }
        }
    }
}

impl DisplayState {
    fn going(&self) -> MutexGuard<'_, Vec<RunningAttempt>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the running attempt of this name.
    fn ended(&self, name: &str) {
        self.going().retain(|other| other.name != name);
    }

    fn end_steps(&mut self) {
        if self.steps {
            self.bar.set_style(ProgressStyle::default_spinner());
            self.steps = false;
        }
    }

    fn show(&self) {
        let width = columns();
        let mut text = wrap_to(&self.counts.line(), "  ", width);
        for event in &self.last {
            text.push('\n');
            text.push_str(&indented(event, width));
        }
        self.bar.set_message(text);
    }

    /// Adds an ended attempt to the lines below the bar, and drops the lines beyond [`LAST`].
    fn keep(&mut self, record: &AttemptRecord) {
        let name = attempt_name(&record.sample, record.attempt, &record.agent);
        let took = duration(record.wall_seconds);
        let outcome = outcome(record.end, record.pass);
        self.last.push_front(format!("{name}: {outcome}, {took}, ${:.2}", record.cost));
        self.last.truncate(LAST);
    }
}

impl ProgressCounts {
    fn add(&mut self, record: &AttemptRecord) {
        self.finished += 1;
        self.running = self.running.saturating_sub(1);
        self.cost += record.cost;
        if record.is_stopped() {
            self.stopped += 1;
        } else if record.is_infrastructure() {
            self.infrastructure += 1;
        } else if record.pass {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }

    fn line(&self) -> String {
        let mut line = format!("{} running, {} passed, {} failed", self.running, self.passed, self.failed);
        if self.infrastructure > 0 {
            let _ = write!(line, ", {} lost to infrastructure", self.infrastructure);
        }
        if self.stopped > 0 {
            let _ = write!(line, ", {} stopped", self.stopped);
        }
        if self.retried > 0 {
            let _ = write!(line, ", {} tried again", self.retried);
        }
        let ended = self.passed + self.failed + self.infrastructure;
        if let (Some(begun), true) = (self.begun, ended > 0) {
            let rate = ended as f64 / begun.elapsed().as_secs_f64().max(0.001);
            let _ = write!(line, ", {:.0}/min", rate * 60.0);
        }
        let _ = write!(line, ", ${:.2}", self.cost);
        if let Some(left) = self.seconds_left() {
            let _ = write!(line, ", {} left", duration(left));
        }
        line
    }

    /// Estimates the remaining seconds from the rate of this session.
    fn seconds_left(&self) -> Option<f64> {
        let (done, left) = (self.finished.checked_sub(self.before)?, self.total.checked_sub(self.finished)?);
        (done > 0 && left > 0).then(|| Some(self.begun?.elapsed().as_secs_f64() / done as f64 * left as f64)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wrap_between_words_on_a_narrow_terminal() {
        let counts =
            ProgressCounts { passed: 12, failed: 30, infrastructure: 2, cost: 1.5, ..ProgressCounts::default() };
        let line = counts.line();
        let wrapped = wrap_to(&line, "  ", 46);
        assert!(wrapped.lines().count() > 1 && wrapped.lines().all(|line| line.len() <= 46), "{wrapped}");
        assert_eq!(wrapped.split_whitespace().collect::<Vec<_>>().join(" "), line);
        let attempt = indented("kmeanspp_0,3.1 react+prompt=planning: passed, 1 min 20 s, $0.12", 46);
        assert!(attempt.starts_with("  kmeanspp_0,3.1") && attempt.lines().all(|line| line.len() <= 46), "{attempt}");
    }

    #[test]
    fn an_attempt_that_is_tried_again_leaves_the_list_of_running_attempts_and_no_other_does() {
        let display = ProgressDisplay::new(true);
        let start = |agent: &str, attempt: u32| {
            let (agent, sample) = (agent.to_owned(), "tiny_0".to_owned());
            display.on(RunEvent::Started { agent, sample, attempt, so_far: Arc::default() });
        };
        let names = || display.lock().going().iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        for (agent, attempt) in [("gold", 0), ("noop", 0), ("noop", 1)] {
            start(agent, attempt);
        }
        let (agent, sample, why) = ("noop".to_owned(), "tiny_0".to_owned(), "lost".to_owned());
        display.on(RunEvent::Retried { agent, sample, attempt: 1, why });
        assert_eq!(names(), ["tiny_0.0 gold", "tiny_0.0 noop"]);
        start("noop", 1);
        assert_eq!(names(), ["tiny_0.0 gold", "tiny_0.0 noop", "tiny_0.1 noop"]);
    }
}
