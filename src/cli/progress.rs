//! Progress on stderr: bars on a terminal, plain lines elsewhere.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::env::Progress as EnvProgress;
use crate::report::clean;
use crate::run::AttemptRecord;
use crate::run::event::{Observer, RunEvent};

/// On no terminal, a line at most this often while attempts run.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows run events.
pub struct Progress {
    state: Mutex<State>,
    terminal: bool,
}

struct State {
    bar: ProgressBar,
    counts: Counts,
    stage: String,
    /// Whether the bar shows the steps of building an env.
    steps: bool,
    last_line: Instant,
}

#[derive(Default)]
struct Counts {
    total: usize,
    finished: usize,
    running: usize,
    passed: usize,
    failed: usize,
    infrastructure: usize,
    cost: f64,
    begun: Option<Instant>,
}

impl Progress {
    /// A listener; `quiet` shows warnings only.
    pub fn new(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        let bar = if terminal { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if terminal {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        let state =
            State { bar, counts: Counts::default(), stage: String::new(), steps: false, last_line: Instant::now() };
        Self { state: Mutex::new(state), terminal: terminal || quiet }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.lock().bar.finish_and_clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Observer for Progress {
    fn on(&self, event: RunEvent) {
        let mut state = self.lock();
        match event {
            RunEvent::Stage(stage) => {
                state.end_steps();
                if !self.terminal && stage != state.stage && !same_stage(&stage, &state.stage) {
                    talk!("{}", clean(&stage));
                }
                state.bar.set_message(clean(&stage));
                state.stage = stage;
            }
            RunEvent::Env(EnvProgress::Stage(stage)) => {
                state.end_steps();
                if !self.terminal {
                    talk!("  {}", clean(&stage));
                }
                state.bar.set_message(clean(&stage));
                state.stage = stage;
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
                let text = format!("{}: {}", clean(&state.stage), clean(&detail));
                state.bar.set_message(text);
            }
            RunEvent::Env(EnvProgress::Notice(text)) | RunEvent::Warning(text) => {
                let text = clean(&text);
                state.bar.suspend(|| talk!("warning: {text}"));
            }
            RunEvent::Planned { total, finished } => {
                state.counts.total = total;
                state.counts.finished = finished;
                state.counts.begun = Some(Instant::now());
                state.steps = false;
                state.bar.set_length(total as u64);
                state.bar.set_position(finished as u64);
                if let Ok(style) = ProgressStyle::with_template("{bar:16} {pos}/{len}  {msg}  {elapsed}, {eta} left") {
                    state.bar.set_style(style);
                }
                state.bar.reset_eta();
                if !self.terminal {
                    let earlier = if finished > 0 { format!(", {finished} finished before") } else { String::new() };
                    talk!("{total} attempts{earlier}");
                }
                state.show();
            }
            RunEvent::Started { .. } => {
                state.counts.running += 1;
                state.show();
            }
            RunEvent::Retried { sample, why } => {
                state.counts.running = state.counts.running.saturating_sub(1);
                let text = format!("{}: trying again: {}", clean(&sample), clean(&why));
                state.bar.suspend(|| talk!("{text}"));
            }
            RunEvent::Finished(record) => {
                state.counts.add(&record);
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

impl State {
    fn end_steps(&mut self) {
        if self.steps {
            self.bar.set_style(ProgressStyle::default_spinner());
            self.steps = false;
        }
    }

    fn show(&self) {
        self.bar.set_message(self.counts.line());
    }
}

impl Counts {
    fn add(&mut self, record: &AttemptRecord) {
        self.finished += 1;
        self.running = self.running.saturating_sub(1);
        self.cost += record.cost;
        if record.is_infrastructure() {
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
        let ended = self.passed + self.failed + self.infrastructure;
        if let (Some(begun), true) = (self.begun, ended > 0) {
            let rate = ended as f64 / begun.elapsed().as_secs_f64().max(0.001);
            let _ = write!(line, ", {:.0}/min", rate * 60.0);
        }
        line + &format!(", ${:.2}", self.cost)
    }
}

/// Whether two stages differ in their counts only, as "3 of 8" and "4 of 8".
fn same_stage(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    plain(a) == plain(b)
}
