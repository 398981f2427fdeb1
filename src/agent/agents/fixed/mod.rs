//! `fixed`: a fixed procedure instead of the model's own decisions ("agentless"): retrieve, write each function, run
//! the experiments, report. Follows the fixed agents of the original benchmark's paper (and Xia et al., "Agentless",
//! 2024).
//!
//! The functions are written one by one, callees first. For each function, passages of the paper are retrieved; the
//! model names the relevant files, and snippets are retrieved from these files; the model thinks, then writes the
//! function, which is spliced into its file. Then the harness runs the experiments and reads their results by the
//! manifest's rules. If some experiments gave no result, the model may repair its functions, for a number of rounds.

mod one_prompt;
mod order;
mod visible_code;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use crate::agent::experiment::{self, ReplicationOutcome};
use crate::agent::filled::FilledCode;
use crate::agent::plain_chat::{NoReply, PlainChat};
use crate::agent::prompts::fixed::{Missing, ShownFile};
use crate::agent::protocol::{is_only_thoughts, text::ends_with_closed_fence};
use crate::agent::retrieval::{Code, CodeChoice, Passage, RetrievalQuery, Retriever};
use crate::agent::settings::{Fill, Preset, Settings};
use crate::agent::{Agent, AttemptEnd, Context, End, Replication, Task, TaskFunction, prompts, repo};
use crate::error::{Error, Result};
use crate::model::{Model, Reply, Role};
use crate::sample::MASKED;
use visible_code::{described, described_part, others, source, stub, visible_code};

/// Maximum number of relevant files that the model may name, as in the original benchmark.
const MOST_FILES: usize = 10;
/// Maximum number of times that the model is asked for a function. It is asked again only if its reply cannot be
/// spliced into the file; code that does not run is left to the repair rounds.
const MOST_ASKED: usize = 2;
/// Maximum tokens of the reply that names the relevant files.
const LIST_TOKENS: u32 = 400;
/// Maximum number of failed experiments whose errors are shown to the model for a repair.
const MOST_FAILURES: usize = 3;

/// The `fixed` agent.
pub struct Fixed {
    name: String,
    settings: Settings,
    retriever: Retriever,
}

impl Fixed {
    /// Creates the agent with these settings and this name; embedding vectors are stored in `cache`.
    ///
    /// # Errors
    /// Kind `Usage` for unsupported settings, such as `code=agent`; and the errors of the embedding model.
    pub fn new(name: String, settings: Settings, cache: Option<&Path>) -> Result<Self> {
        if settings.code == Some(CodeChoice::Agent) {
            return Err(Error::usage("the agent `fixed` cannot use `code=agent`: it has no tools for reading code")
                .hint("choose another value of `code`, as in `fixed:code=bm25`, or use the agent `react`"));
        }
        settings.preset.check("fixed")?;
        if settings.preset == Preset::Researchcodebench {
            one_prompt::check(&settings)?;
        }
        let retriever = settings.retriever(cache)?;
        Ok(Self { name, settings, retriever })
    }
}

/// The state of an attempt.
struct FixedAttempt<'a> {
    task: &'a Replication,
    model: &'a dyn Model,
    /// The repo's code before the attempt.
    masked: Code,
    /// The repo's code with the functions written so far.
    filled: FilledCode,
    /// Error of the last unusable reply for a function, by the function's index.
    faults: BTreeMap<usize, String>,
    /// Whether code was written since the experiments last ran.
    changed: bool,
}

impl FixedAttempt<'_> {
    /// Whether a function's masked region (a group of statements) is gone, because a reply for another region of this
    /// function was the whole function.
    fn is_replaced(&self, place: usize) -> bool {
        self.task.functions[place].region.is_some() && self.filled.region(place).is_none()
    }

    /// Whether another replaced region of the same function has a smaller index. A repair of the whole function is
    /// requested only at its first region, so that it is requested once.
    fn is_replaced_before(&self, place: usize) -> bool {
        let selector = |place: usize| self.task.functions[place].selector().ok();
        let own = selector(place);
        (0..place).any(|other| self.is_replaced(other) && selector(other) == own)
    }
}

/// Why functions are written again.
#[derive(Clone, Copy)]
enum FunctionFaults<'a> {
    /// The outcome of the experiments that were run.
    Ran(&'a ReplicationOutcome),
    /// Feedback from a review of the work.
    Told(&'a str),
}

#[async_trait]
impl Agent for Fixed {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs_model(&self) -> bool {
        true
    }

    fn only(&self) -> Option<&'static str> {
        Some(MASKED)
    }

    /// Returns the digest of the preset's prompt, which is not part of the digest of all prompts.
    fn digest(&self) -> Option<String> {
        (self.settings.preset == Preset::Researchcodebench).then(|| prompts::preset_digest("researchcodebench_task"))
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        let Some(task) = task.part::<Replication>() else { return Replication::missing(self.name()) };
        let Some(model) = context.model else {
            return End::ModelDenied.because("`fixed` needs a model and was given none");
        };
        let masked = match repo::python_files(context).await {
            Ok(code) => code,
            Err(fault) => return fault.into(),
        };
        let filled = FilledCode::new(masked.clone(), &task.functions);
        let mut work = FixedAttempt { task, model, filled, masked, faults: BTreeMap::new(), changed: false };
        match self.work(&mut work, context).await {
            Ok(ended) | Err(ended) => ended,
        }
    }
}

impl Fixed {
    async fn work(&self, work: &mut FixedAttempt<'_>, context: &mut Context<'_>) -> Result<AttemptEnd, AttemptEnd> {
        let order = order::callees_first(work.task);
        let mut limit = None;
        for &place in &order {
            limit = go_on(self.fill(place, None, work, context).await)?;
            if limit.is_some() {
                break;
            }
        }
        let mut outcome = ReplicationOutcome::default();
        // If no code was written, all experiments would fail, so do not run them.
        if work.changed || work.task.functions.is_empty() {
            outcome = run_experiments(work, context).await;
        }
        for _ in 0..self.settings.repair {
            let done = outcome.failures.is_empty() && work.faults.is_empty();
            if done || limit.is_some() || outcome.stopped.is_some() {
                break;
            }
            for place in to_repair(&order, work, &outcome) {
                limit = go_on(self.fill(place, Some(FunctionFaults::Ran(&outcome)), work, context).await)?;
                if limit.is_some() {
                    break;
                }
            }
            if work.changed {
                outcome = run_experiments(work, context).await;
            }
        }
        let mut ended = finish(limit, &outcome, work, context);
        while limit.is_none() && matches!(ended.end, End::Answered | End::GaveUp) {
            let told = context.feedback(self.settings.feedback, self.settings.rounds).await?;
            let Some(told) = told else { break };
            for &place in &order {
                limit = go_on(self.fill(place, Some(FunctionFaults::Told(&told)), work, context).await)?;
                if limit.is_some() {
                    break;
                }
            }
            if work.changed {
                outcome = run_experiments(work, context).await;
            }
            ended = finish(limit, &outcome, work, context);
        }
        Ok(ended)
    }

    /// Writes one function, or rewrites it because of failed experiments or feedback.
    async fn fill(
        &self,
        place: usize,
        repair: Option<FunctionFaults<'_>>,
        work: &mut FixedAttempt<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), NoReply> {
        let function = &work.task.functions[place];
        // A replaced region is already written. If its function needs a repair, the model is asked for the whole
        // function.
        if work.is_replaced(place) && (repair.is_none() || work.is_replaced_before(place)) {
            return Ok(());
        }
        if self.settings.preset == Preset::Researchcodebench {
            return self.fill_by_one_prompt(place, work, context).await;
        }
        let code = match self.settings.fill {
            Fill::Masked => &work.masked,
            Fill::Filled => &work.filled.code,
        };
        let missing = |what: String| NoReply::End(End::GaveUp.because(format!("`{}`: {what}", function.at)));
        let wanted = RetrievalQuery::new(function, code).map_err(missing)?;
        let module = code.modules.get(&wanted.file).ok_or_else(|| missing("its file is gone".into()))?;
        // Always take the stub from the masked repo, because the function may already be written in `work.filled`.
        let stub = stub(function, &work.masked).map_err(missing)?;
        let name = order::last(&function.at).to_owned();
        let mut missing_one = described(&name, module, wanted.function, &function.description);
        if let Some(region) = function.region.as_ref().filter(|_| !work.is_replaced(place)) {
            let at = match self.settings.fill {
                Fill::Masked => &region.stand_in,
                Fill::Filled => work.filled.region(place).unwrap_or(&region.stand_in),
            };
            missing_one = described_part(missing_one, module, wanted.function, at, region.lines);
        }

        let failed = |what: String| NoReply::End(End::ModelError.because(what));
        let passages: Vec<Passage> = self.retriever.passages(&work.task.text, &wanted).await.map_err(failed)?;
        let files = self.localise(function, &stub, code, work, context).await?;
        let (file, left_out) = visible_code(module, wanted.function, self.retriever.code);
        let whole = (self.retriever.code == CodeChoice::Full).then_some(wanted.file.as_path());
        let snippets = self.retriever.snippets(code, &wanted, files.as_deref(), whole).await.map_err(failed)?;
        let mut snippets: Vec<(String, String)> = snippets.into_iter().map(|it| (it.at, it.text)).collect();
        if self.retriever.code == CodeChoice::Full {
            snippets = others(code, &wanted.file);
        }

        let path = wanted.file.display().to_string();
        let shown = ShownFile { path: &path, text: &file, left_out: &left_out };
        let told = prompts::fixed::function(work.task, function, &missing_one, shown, &passages, &snippets);
        let broken = repair.map(|wrong| {
            let now = source(function, &work.filled.code).unwrap_or_default();
            match wrong {
                FunctionFaults::Ran(outcome) => {
                    let fault = work.faults.get(&place).map(String::as_str);
                    let failures: Vec<_> = outcome.failures.iter().take(MOST_FAILURES).collect();
                    prompts::fixed::repair(&name, &now, fault, &failures)
                }
                FunctionFaults::Told(told) => prompts::fixed::feedback(&name, &now, told),
            }
        });
        let mut unusable: Option<String> = None;
        for _ in 0..MOST_ASKED {
            // Begin a new conversation without the unusable reply, because small models would repeat it.
            let mut talk = begin(work.model, context);
            talk.add_message(Role::User, told.clone(), context);
            for more in broken.iter().chain(&unusable) {
                talk.add_message(Role::User, more.clone(), context);
            }
            let reply = write(&mut talk, &missing_one, self.settings.reasoning_tokens, context).await?;
            // The code of a reply that was cut off is complete only if a fence closes it.
            match context.cut_note(&reply).filter(|_| !ends_with_closed_fence(&reply.text)) {
                Some(what) => note_fault(place, what, work, context),
                None => self.put(place, &reply.text, work, context).await?,
            }
            unusable = work.faults.get(&place).map(|fault| prompts::fixed::again(fault));
            if unusable.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Sends the prompt of [`one_prompt`] for one function, and replaces the function's masked code by the last code
    /// block of the reply. If the reply is unusable, the model is not asked again.
    async fn fill_by_one_prompt(
        &self,
        place: usize,
        work: &mut FixedAttempt<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), NoReply> {
        let missing = |what: String| NoReply::End(End::GaveUp.because(what));
        let asked = one_prompt::ask(place, &self.settings, work).map_err(missing)?;
        let mut talk = PlainChat::over(work.model, Vec::new());
        talk.add_message(Role::User, asked, context);
        let reply = talk.ask(None, context).await?;
        match one_prompt::last_block(&reply.text) {
            Ok(block) => self.put(place, &block, work, context).await,
            Err(what) => {
                note_fault(place, what, work, context);
                Ok(())
            }
        }
    }

    /// Asks the model to name the relevant files. Returns `None`, which means all files, if code is not retrieved by
    /// BM25 or embeddings, if the repo has no more files than the model may name, or if the reply names no known path.
    async fn localise(
        &self,
        function: &TaskFunction,
        stub: &str,
        code: &Code,
        work: &FixedAttempt<'_>,
        context: &mut Context<'_>,
    ) -> Result<Option<Vec<PathBuf>>, NoReply> {
        let asks = matches!(self.retriever.code, CodeChoice::Bm25 | CodeChoice::Embedding);
        if !asks || code.modules.len() <= MOST_FILES {
            return Ok(None);
        }
        let paths: Vec<String> = code.modules.keys().map(|path| path.display().to_string()).collect();
        let mut text = String::new();
        for most in [Some(LIST_TOKENS), None] {
            let mut talk = begin(work.model, context);
            talk.add_message(Role::User, prompts::fixed::files(work.task, function, stub, &paths, MOST_FILES), context);
            let reply = ask(&mut talk, most, self.settings.reasoning_tokens, context).await?;
            // If the model used up all tokens on its thoughts, ask it again without the limit.
            let is_starved = reply.reaches(most) && is_only_thoughts(&reply.text);
            text = reply.text;
            if !is_starved {
                break;
            }
        }
        let named = named(&text, &paths);
        // If the reply names no known path, all files may be searched.
        Ok((!named.is_empty()).then_some(named))
    }

    /// Splices a reply into the function's file, and writes the file into the sandbox.
    async fn put(
        &self,
        place: usize,
        reply: &str,
        work: &mut FixedAttempt<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), NoReply> {
        match work.filled.put(&work.task.functions, place, reply) {
            Err(what) => {
                note_fault(place, what, work, context);
                Ok(())
            }
            Ok(file) => {
                work.changed = true;
                let mut faults = std::mem::take(&mut work.faults);
                faults.retain(|&faulty, _| faulty != place && !work.is_replaced(faulty));
                work.faults = faults;
                experiment::write_all(&[file], context).await.map_err(NoReply::End)
            }
        }
    }
}

/// Counts an unusable reply for a function as a format error, and keeps the error for the function's next prompt.
fn note_fault(place: usize, what: String, work: &mut FixedAttempt<'_>, context: &mut Context<'_>) {
    context.count_format_error(&what);
    work.faults.insert(place, what);
}

/// Runs all experiments with the code written so far.
async fn run_experiments(work: &mut FixedAttempt<'_>, context: &mut Context<'_>) -> ReplicationOutcome {
    work.changed = false;
    experiment::run_all(&work.task.checks(), context, false).await
}

/// Begins a conversation with the model. The first message is the system prompt.
fn begin<'a>(model: &'a dyn Model, context: &mut Context<'_>) -> PlainChat<'a> {
    let mut talk = PlainChat::over(model, Vec::new());
    talk.add_message(Role::System, prompts::fixed::system(), context);
    talk
}

/// Asks for the function after about `reasoning` tokens of thinking. A model that has a reasoning budget of its own
/// gets these tokens as the budget. Any other model is first asked to think, and to continue ("Wait") while tokens are
/// left.
async fn write(
    talk: &mut PlainChat<'_>,
    missing: &Missing,
    reasoning: u32,
    context: &mut Context<'_>,
) -> Result<Reply, NoReply> {
    if reasoning > 0 && !talk.reasons() {
        let question = prompts::fixed::reason(&missing.called, reasoning);
        talk.think(question, &prompts::fixed::wait(), reasoning, context).await?;
    }
    talk.add_message(Role::User, prompts::fixed::write(missing), context);
    ask(talk, None, reasoning, context).await
}

/// Asks for a reply of at most `most` tokens. A model that reasons by itself always gets a reasoning budget; 0 asks for
/// as little reasoning as possible.
async fn ask(
    talk: &mut PlainChat<'_>,
    most: Option<u32>,
    reasoning: u32,
    context: &mut Context<'_>,
) -> Result<Reply, NoReply> {
    let before = context.sampling.reasoning_tokens;
    context.sampling.reasoning_tokens = talk.reasons().then_some(reasoning);
    let reply = talk.ask(most, context).await;
    context.sampling.reasoning_tokens = before;
    reply
}

/// Reports the experiments' results as the agent's answer, and returns why the attempt ends.
fn finish(
    limit: Option<End>,
    outcome: &ReplicationOutcome,
    work: &FixedAttempt<'_>,
    context: &mut Context<'_>,
) -> AttemptEnd {
    let mut said: Vec<String> = work.faults.values().cloned().collect();
    said.extend(outcome.failures.iter().map(|failure| format!("{}: {}", failure.key, failure.what)));
    let detail = (!said.is_empty()).then(|| said.join("; "));
    let complete = outcome.answer.len() == work.task.experiments.len();
    let none = outcome.answer.is_empty() && !work.task.experiments.is_empty();
    if let Some(stopped) = outcome.stopped.as_ref().filter(|stopped| stopped.end.is_infrastructure()) {
        return stopped.clone();
    }
    if !none {
        experiment::answer(outcome.answer.clone(), context);
    }
    match (outcome.stopped.clone(), limit) {
        (Some(stopped), _) => stopped,
        (None, Some(end)) if !complete => AttemptEnd { detail, ..end.into() },
        _ if none => AttemptEnd { detail, ..End::GaveUp.into() },
        _ => AttemptEnd { detail, ..End::Answered.into() },
    }
}

/// Returns a reached limit as a value, because the code written so far can still be run. Returns any other end of the
/// attempt as an error.
fn go_on(step: Result<(), NoReply>) -> Result<Option<End>, AttemptEnd> {
    match step {
        Ok(()) => Ok(None),
        Err(NoReply::Limit(end)) => Ok(Some(end)),
        Err(NoReply::End(ended)) => Err(ended),
    }
}

/// Selects the functions to rewrite: functions without code and functions named in a traceback. If there are no such
/// functions, selects all functions.
fn to_repair(order: &[usize], work: &FixedAttempt<'_>, outcome: &ReplicationOutcome) -> Vec<usize> {
    let in_traceback = |place: usize| {
        let name = order::last(&work.task.functions[place].at);
        outcome.failures.iter().any(|failure| failure.stderr.contains(&format!("in {name}\n")))
    };
    let named: Vec<usize> =
        order.iter().copied().filter(|place| work.faults.contains_key(place) || in_traceback(*place)).collect();
    if named.is_empty() { order.to_vec() } else { named }
}

/// Returns the known paths that a reply names, in the reply's order, at most [`MOST_FILES`].
fn named(reply: &str, paths: &[String]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for line in reply.lines() {
        // If a line matches both `a.py` and `b/a.py`, it means the longer path.
        let fitting = paths.iter().filter(|path| line.contains(path.as_str())).max_by_key(|path| path.len());
        if let Some(path) = fitting.map(PathBuf::from).filter(|path| !found.contains(path)) {
            found.push(path);
        }
    }
    found.truncate(MOST_FILES);
    found
}
