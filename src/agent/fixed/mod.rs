//! `fixed`: a fixed course in place of the model's own decisions ("agentless"): retrieve, write each function, run the
//! experiments, report. As the fixed agents of the paper (and Xia et al., "Agentless", 2024).
//!
//! For each function, callees first: passages of the paper are retrieved; the model names the files that matter, and
//! snippets are retrieved from them; the model thinks, then writes the function, which is spliced into its file. The
//! experiments are run by the harness, their results read by the manifest's rule, and where some gave none the model may
//! repair its functions, a number of rounds.

mod order;
mod shown;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::experiment::{self, Outcome};
use super::prompts::fixed::Missing;
use super::retrieval::{Code, CodeChoice, Passage, Retriever, Wanted};
use super::settings::{Fill, Settings};
use super::talk::{Stop, Talk};
use super::{Agent, Context, End, Ended, Replication, Task, TaskFunction, prompts, repo};
use crate::code::{Module, Spliced};
use crate::error::{Error, Result};
use crate::model::{Model, Reply, Role};
use crate::sample::MASKED;
use shown::{described, described_part, others, shown, source, stub};

/// Most files that the model names, as in the original.
const MOST_FILES: usize = 10;
/// How often a function is asked for until there is one that can be spliced in. Whether it runs is a matter of `repair`.
const MOST_ASKED: usize = 2;
/// Most tokens of a list of files.
const LIST_TOKENS: u32 = 400;
/// Most experiments whose errors are shown in a repair.
const MOST_FAILURES: usize = 3;

/// The agent.
pub struct Fixed {
    name: String,
    settings: Settings,
    retriever: Retriever,
}

impl Fixed {
    /// With these settings, under this name; vectors are kept in `cache`.
    ///
    /// # Errors
    /// Kind `Usage` for `code = agent`, and those of the embedding model.
    pub fn new(name: String, settings: Settings, cache: Option<&Path>) -> Result<Self> {
        if settings.code == Some(CodeChoice::Agent) {
            return Err(Error::usage("a fixed agent does not look for code itself")
                .hint("choose another `--code`, as `bm25`, or the agent `react`"));
        }
        let retriever = settings.retriever(cache)?;
        Ok(Self { name, settings, retriever })
    }
}

/// The state of an attempt.
struct Work<'a> {
    task: &'a Replication,
    model: &'a dyn Model,
    /// The repo as it was.
    masked: Code,
    /// The repo with what was written.
    code: Code,
    /// What was wrong with the last reply for a function, by its place.
    faults: BTreeMap<usize, String>,
    /// By the places of regions, where each is now in [`Work::code`]; gone once the function around it was replaced.
    regions: BTreeMap<usize, Range<usize>>,
}

/// What is wrong with functions that are to be written again.
#[derive(Clone, Copy)]
enum Wrong<'a> {
    /// What the agent has seen when it ran the experiments.
    Ran(&'a Outcome),
    /// What it was told by whoever looked at its work.
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

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> Ended {
        let Some(task) = task.part::<Replication>() else { return Replication::missing(self.name()) };
        let Some(model) = context.model else {
            return End::ModelDenied.because("`fixed` needs a model and was given none");
        };
        let masked = match repo::python_files(context).await {
            Ok(code) => code,
            Err(fault) => return fault.into(),
        };
        let stand_in = |function: &TaskFunction| function.region.as_ref().map(|region| region.stand_in.clone());
        let regions = task.functions.iter().enumerate().filter_map(|(place, it)| Some((place, stand_in(it)?)));
        let regions = regions.collect();
        let mut work = Work { task, model, code: masked.clone(), masked, faults: BTreeMap::new(), regions };
        match self.work(&mut work, context).await {
            Ok(ended) | Err(ended) => ended,
        }
    }
}

impl Fixed {
    async fn work(&self, work: &mut Work<'_>, context: &mut Context<'_>) -> Result<Ended, Ended> {
        let order = order::callees_first(work.task);
        let mut limit = None;
        for &place in &order {
            limit = go_on(self.fill(place, None, work, context).await)?;
            if limit.is_some() {
                break;
            }
        }
        let mut outcome = self.validate(work, context).await;
        for _ in 0..self.settings.repair {
            let done = outcome.failures.is_empty() && work.faults.is_empty();
            if done || limit.is_some() || outcome.stopped.is_some() {
                break;
            }
            for place in to_repair(&order, work, &outcome) {
                limit = go_on(self.fill(place, Some(Wrong::Ran(&outcome)), work, context).await)?;
                if limit.is_some() {
                    break;
                }
            }
            outcome = self.validate(work, context).await;
        }
        let mut ended = finish(limit, outcome, work, context);
        while limit.is_none() && matches!(ended.end, End::Answered | End::GaveUp) {
            let told = context.feedback(self.settings.feedback, self.settings.rounds).await?;
            let Some(told) = told else { break };
            for &place in &order {
                limit = go_on(self.fill(place, Some(Wrong::Told(&told)), work, context).await)?;
                if limit.is_some() {
                    break;
                }
            }
            let outcome = self.validate(work, context).await;
            ended = finish(limit, outcome, work, context);
        }
        Ok(ended)
    }

    /// Runs the experiments, unless no function was written: then all of them would fail.
    async fn validate(&self, work: &Work<'_>, context: &mut Context<'_>) -> Outcome {
        let functions = work.task.functions.len();
        if functions > 0 && work.faults.len() == functions {
            return Outcome::default();
        }
        experiment::run_all(&work.task.checks(), context, false).await
    }

    /// Writes one function, or writes it again in view of what went wrong.
    async fn fill(
        &self,
        place: usize,
        repair: Option<Wrong<'_>>,
        work: &mut Work<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), Stop> {
        let function = &work.task.functions[place];
        if function.region.is_some() && !work.regions.contains_key(&place) {
            // It was written with the whole function, when another part of that was asked for.
            return Ok(());
        }
        let code = match self.settings.fill {
            Fill::Masked => &work.masked,
            Fill::Filled => &work.code,
        };
        let missing = |what: String| Stop::End(End::GaveUp.because(format!("`{}`: {what}", function.at)));
        let wanted = Wanted::new(function, code).map_err(missing)?;
        let module = code.modules.get(&wanted.file).ok_or_else(|| missing("its file is gone".into()))?;
        // What the function begins with, however often it has been written since.
        let stub = stub(function, &work.masked).map_err(missing)?;
        let name = order::last(&function.at).to_owned();
        let mut missing_one = described(&name, module, wanted.function, &function.description);
        if let Some(region) = &function.region {
            let at = match self.settings.fill {
                Fill::Masked => &region.stand_in,
                Fill::Filled => &work.regions[&place],
            };
            missing_one = described_part(missing_one, module, wanted.function, at, region.lines);
        }

        let failed = |what: String| Stop::End(End::ModelError.because(what));
        let passages: Vec<Passage> = self.retriever.passages(&work.task.text, &wanted).await.map_err(failed)?;
        let files = self.localise(function, &stub, code, work, context).await?;
        let (file, left_out) = shown(module, wanted.function, self.retriever.code);
        let whole = (self.retriever.code == CodeChoice::Full).then_some(wanted.file.as_path());
        let snippets = self.retriever.snippets(code, &wanted, files.as_deref(), whole).await.map_err(failed)?;
        let mut snippets: Vec<(String, String)> = snippets.into_iter().map(|it| (it.at, it.text)).collect();
        if self.retriever.code == CodeChoice::Full {
            snippets = others(code, &wanted.file);
        }

        let path = wanted.file.display().to_string();
        let shown = (path.as_str(), file.as_str(), left_out.as_slice());
        let told = prompts::fixed::function(work.task, function, &missing_one, shown, &passages, &snippets);
        let broken = repair.map(|wrong| {
            let now = source(function, &work.code).unwrap_or_default();
            match wrong {
                Wrong::Ran(outcome) => {
                    let fault = work.faults.get(&place).map(String::as_str);
                    let failures: Vec<_> = outcome.failures.iter().take(MOST_FAILURES).collect();
                    prompts::fixed::repair(&name, &now, fault, &failures)
                }
                Wrong::Told(told) => prompts::fixed::feedback(&name, &now, told),
            }
        });
        let mut unusable: Option<String> = None;
        for _ in 0..MOST_ASKED {
            // Without the reply that could not be used: small models write it once more.
            let mut talk = begin(work.model, context);
            talk.say(Role::User, told.clone(), context);
            for more in broken.iter().chain(&unusable) {
                talk.say(Role::User, more.clone(), context);
            }
            let reply = write(&mut talk, &missing_one, self.settings.reasoning_tokens, context).await?;
            self.put(place, &reply.text, work, context).await?;
            unusable = work.faults.get(&place).map(|fault| prompts::fixed::again(fault));
            if unusable.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// The files that the model names, where there are more than it may name.
    async fn localise(
        &self,
        function: &TaskFunction,
        stub: &str,
        code: &Code,
        work: &Work<'_>,
        context: &mut Context<'_>,
    ) -> Result<Option<Vec<PathBuf>>, Stop> {
        let asks = matches!(self.retriever.code, CodeChoice::Bm25 | CodeChoice::Embedding);
        if !asks || code.modules.len() <= MOST_FILES {
            return Ok(None);
        }
        let paths: Vec<String> = code.modules.keys().map(|path| path.display().to_string()).collect();
        let mut talk = begin(work.model, context);
        talk.say(Role::User, prompts::fixed::files(work.task, function, stub, &paths, MOST_FILES), context);
        let reply = talk.ask(Some(LIST_TOKENS), context).await?;
        let named = named(&reply.text, &paths);
        // A reply without any path is taken as no restriction.
        Ok((!named.is_empty()).then_some(named))
    }

    /// Splices a reply into its file and writes that into the sandbox.
    async fn put(&self, place: usize, reply: &str, work: &mut Work<'_>, context: &mut Context<'_>) -> Result<(), Stop> {
        let function = &work.task.functions[place];
        let spliced = splice(function, &work.code, work.regions.get(&place), reply);
        match spliced {
            Err(what) => {
                context.count_format_error(&what);
                work.faults.insert(place, what);
                Ok(())
            }
            Ok((spliced, module)) => {
                work.faults.remove(&place);
                let functions = &work.task.functions;
                let here = |place: usize| functions[place].region.as_ref().is_some_and(|it| it.file == module.path());
                work.regions = std::mem::take(&mut work.regions)
                    .into_iter()
                    .filter_map(|(place, at)| Some((place, if here(place) { spliced.moved(&at)? } else { at })))
                    .collect();
                let files = [(module.path().to_owned(), module.source().to_vec())];
                let written = experiment::write_all(&files, context).await;
                written.map_err(Stop::End)?;
                work.code.modules.insert(module.path().to_owned(), module);
                Ok(())
            }
        }
    }
}

/// A conversation with the system prompt.
fn begin<'a>(model: &'a dyn Model, context: &mut Context<'_>) -> Talk<'a> {
    let mut talk = Talk::over(model, Vec::new());
    talk.say(Role::System, prompts::fixed::system(), context);
    talk
}

/// Asks for the function, after thoughts of `reasoning` tokens. A provider that takes such a budget is given it;
/// otherwise thoughts are asked for first, and asked for again while tokens are left ("Wait").
async fn write(
    talk: &mut Talk<'_>,
    missing: &Missing,
    reasoning: u32,
    context: &mut Context<'_>,
) -> Result<Reply, Stop> {
    // A model that reasons by itself also has to be told when not to.
    let native = talk.reasons();
    if reasoning > 0 && !native {
        let question = prompts::fixed::reason(&missing.called, reasoning);
        talk.think(question, &prompts::fixed::wait(), reasoning, context).await?;
    }
    talk.say(Role::User, prompts::fixed::write(missing), context);
    let before = context.sampling.reasoning_tokens;
    context.sampling.reasoning_tokens = native.then_some(reasoning);
    let reply = talk.ask(None, context).await;
    context.sampling.reasoning_tokens = before;
    reply
}

/// How the attempt ends, its results reported.
fn finish(limit: Option<End>, outcome: Outcome, work: &Work<'_>, context: &mut Context<'_>) -> Ended {
    let mut said: Vec<String> = work.faults.values().cloned().collect();
    said.extend(outcome.failures.iter().map(|failure| format!("{}: {}", failure.key, failure.what)));
    let detail = (!said.is_empty()).then(|| said.join("; "));
    let complete = outcome.answer.len() == work.task.experiments.len();
    let none = outcome.answer.is_empty() && !work.task.experiments.is_empty();
    if let Some(stopped) = outcome.stopped.as_ref().filter(|stopped| stopped.end.is_infrastructure()) {
        return stopped.clone();
    }
    if !none {
        experiment::answer(outcome.answer, context);
    }
    match (outcome.stopped, limit) {
        (Some(stopped), _) => stopped,
        (None, Some(end)) if !complete => Ended { detail, ..end.into() },
        _ if none => Ended { detail, ..End::GaveUp.into() },
        _ => Ended { detail, ..End::Answered.into() },
    }
}

/// A limit is no end: what was written can be run.
fn go_on(step: Result<(), Stop>) -> Result<Option<End>, Ended> {
    match step {
        Ok(()) => Ok(None),
        Err(Stop::Limit(end)) => Ok(Some(end)),
        Err(Stop::End(ended)) => Err(ended),
    }
}

/// The functions that are to be written again: those without code, those that the errors name, or else all.
fn to_repair(order: &[usize], work: &Work<'_>, outcome: &Outcome) -> Vec<usize> {
    let in_traceback = |place: usize| {
        let name = order::last(&work.task.functions[place].at);
        outcome.failures.iter().any(|failure| failure.stderr.contains(&format!("in {name}\n")))
    };
    let named: Vec<usize> =
        order.iter().copied().filter(|place| work.faults.contains_key(place) || in_traceback(*place)).collect();
    if named.is_empty() { order.to_vec() } else { named }
}

/// The known paths that a reply names, in its order, at most [`MOST_FILES`].
fn named(reply: &str, paths: &[String]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for line in reply.lines() {
        // Of `a.py` and `b/a.py` the longer one is meant where both fit.
        let fitting = paths.iter().filter(|path| line.contains(path.as_str())).max_by_key(|path| path.len());
        if let Some(path) = fitting.map(PathBuf::from).filter(|path| !found.contains(path)) {
            found.push(path);
        }
    }
    found.truncate(MOST_FILES);
    found
}

/// The file with a reply in it, parsed.
fn splice(
    function: &TaskFunction,
    code: &Code,
    region: Option<&Range<usize>>,
    reply: &str,
) -> Result<(Spliced, Module), String> {
    let wanted = Wanted::new(function, code)?;
    let module = code.modules.get(&wanted.file).ok_or("its file is gone")?;
    let spliced = match region {
        Some(at) => module.splice_region(Some(wanted.function), at, reply)?,
        None => module.splice(wanted.function, reply)?,
    };
    let module = Module::parse(wanted.file, spliced.bytes.clone()).map_err(|error| error.to_string())?;
    Ok((spliced, module))
}
