//! `fixed`: a fixed course in place of the model's own decisions ("agentless"): retrieve, write each function, run the
//! experiments, report. As the fixed agents of the paper (and Xia et al., "Agentless", 2024).
//!
//! For each function, callees first: passages of the paper are retrieved; the model names the files that matter, and
//! snippets are retrieved from them; the model thinks, then writes the function, which is spliced into its file. The
//! experiments are run by the harness, their results read by the manifest's rule, and where some gave none the model may
//! repair its functions, a number of rounds.

mod order;
pub(super) mod talk;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::experiment::{self, Outcome};
use super::retrieval::{Code, CodeChoice, PaperChoice, Passage, Retriever, Wanted};
use super::settings::{Fill, Settings, label, written};
use super::{Agent, Context, End, Event, Task, prompts, repo};
use crate::code::{Function, Module};
use crate::error::{Error, Result};
use crate::model::{Model, Role};
use crate::sandbox::Fault;
use prompts::fixed::{Missing, STAND_IN};
use talk::{Stop, Talk};

/// Most files that the model names, as in the original.
const MOST_FILES: usize = 10;
/// How often a function is asked for until there is one that can be spliced in. Whether it runs is a matter of `repair`.
const MOST_ASKED: usize = 2;
/// Most tokens of a list of files.
const LIST_TOKENS: u32 = 400;
/// Characters of a file above which only a part of it is shown.
const MOST_SHOWN: usize = 12_000;
/// Lines of a method up to which it is shown for the attributes that it sets.
const MOST_LINES: usize = 15;
/// Most experiments whose errors are shown in a repair.
const MOST_FAILURES: usize = 3;

/// The agent.
pub struct Fixed {
    name: String,
    settings: Settings,
    retriever: Retriever,
}

impl Fixed {
    /// With these settings; vectors are kept in `cache`.
    ///
    /// # Errors
    /// Kind `Usage` for `code = agent`, and those of the embedding model.
    pub fn new(settings: &Settings, cache: Option<&Path>) -> Result<Self> {
        if settings.code == Some(CodeChoice::Agent) {
            return Err(Error::usage("a fixed agent does not look for code itself")
                .hint("choose another `--code`, as `bm25`, or the agent `react`"));
        }
        let (paper, code) = (PaperChoice::Bm25, CodeChoice::Bm25);
        let retriever = settings.retriever(paper, code, cache)?;
        let default = Settings::default();
        let name = label(
            "fixed",
            &[
                ("paper", written(retriever.paper), written(paper)),
                ("code", written(retriever.code), written(code)),
                ("passages", settings.passages.to_string(), default.passages.to_string()),
                ("snippets", settings.snippets.to_string(), default.snippets.to_string()),
                ("fill", written(settings.fill), written(default.fill)),
                ("repair", settings.repair.to_string(), default.repair.to_string()),
                ("reasoning", settings.reasoning_tokens.to_string(), default.reasoning_tokens.to_string()),
            ],
        );
        Ok(Self { name, settings: settings.clone(), retriever })
    }
}

/// The state of an attempt.
struct Work<'a> {
    task: &'a Task,
    model: &'a dyn Model,
    /// The repo as it was.
    masked: Code,
    /// The repo with what was written.
    code: Code,
    /// What was wrong with the last reply for a function, by its place.
    faults: BTreeMap<usize, String>,
}

#[async_trait]
impl Agent for Fixed {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs_model(&self) -> bool {
        true
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> (End, Option<String>) {
        let Some(model) = context.model else {
            return (End::ModelDenied, Some("`fixed` needs a model and was given none".to_owned()));
        };
        let masked = match repo::python_files(context).await {
            Ok(code) => code,
            Err(fault) => return faulted(fault),
        };
        let mut work = Work { task, model, code: masked.clone(), masked, faults: BTreeMap::new() };
        match self.work(&mut work, context).await {
            Ok(end) | Err(end) => end,
        }
    }
}

type Ended = (End, Option<String>);

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
                limit = go_on(self.fill(place, Some(&outcome), work, context).await)?;
                if limit.is_some() {
                    break;
                }
            }
            outcome = self.validate(work, context).await;
        }
        Ok(finish(limit, outcome, work, context))
    }

    /// Runs the experiments, unless no function was written: then all of them would fail.
    async fn validate(&self, work: &Work<'_>, context: &mut Context<'_>) -> Outcome {
        let functions = work.task.functions.len();
        if functions > 0 && work.faults.len() == functions {
            return Outcome::default();
        }
        experiment::run_all(work.task, context, false).await
    }

    /// Writes one function, or writes it again in view of what went wrong.
    async fn fill(
        &self,
        place: usize,
        repair: Option<&Outcome>,
        work: &mut Work<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), Stop> {
        let function = &work.task.functions[place];
        let code = match self.settings.fill {
            Fill::Masked => &work.masked,
            Fill::Filled => &work.code,
        };
        let missing = |what: String| Stop::End(End::GaveUp, Some(format!("`{}`: {what}", function.at)));
        let wanted = Wanted::new(function, code).map_err(missing)?;
        let module = code.modules.get(&wanted.file).ok_or_else(|| missing("its file is gone".into()))?;
        // What the function begins with, however often it has been written since.
        let stub = stub(function, &work.masked).map_err(missing)?;
        let name = function.at.rsplit(['.', ':']).next().unwrap_or(&function.at);
        let name = name.split('#').next().unwrap_or(name).to_owned();
        let missing_one = described(&name, module, wanted.function, &function.description);

        let failed = |what: String| Stop::End(End::ModelError, Some(what));
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
        let broken = repair.map(|outcome| {
            let fault = work.faults.get(&place).map(String::as_str);
            let failures: Vec<_> = outcome.failures.iter().take(MOST_FAILURES).collect();
            let now = source(function, &work.code).unwrap_or_default();
            prompts::fixed::repair(&name, &now, fault, &failures)
        });
        let mut unusable: Option<String> = None;
        for _ in 0..MOST_ASKED {
            // Without the reply that could not be used: small models write it once more.
            let mut talk = Talk::new(work.model, context);
            talk.say(Role::User, told.clone(), context);
            for more in broken.iter().chain(&unusable) {
                talk.say(Role::User, more.clone(), context);
            }
            let reply = talk.write(&missing_one, self.settings.reasoning_tokens, context).await?;
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
        function: &super::TaskFunction,
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
        let mut talk = Talk::new(work.model, context);
        talk.say(Role::User, prompts::fixed::files(work.task, function, stub, &paths, MOST_FILES), context);
        let reply = talk.ask(Some(LIST_TOKENS), context).await?;
        let named = named(&reply.text, &paths);
        // A reply without any path is taken as no restriction.
        Ok((!named.is_empty()).then_some(named))
    }

    /// Splices a reply into its file and writes that into the sandbox.
    async fn put(&self, place: usize, reply: &str, work: &mut Work<'_>, context: &mut Context<'_>) -> Result<(), Stop> {
        let function = &work.task.functions[place];
        let spliced = splice(function, &work.code, reply);
        match spliced {
            Err(what) => {
                context.budget.format_errors += 1;
                context.trajectory.push(&Event::FormatError { step: context.budget.steps, what: what.clone() });
                work.faults.insert(place, what);
                Ok(())
            }
            Ok(module) => {
                work.faults.remove(&place);
                let files = [(module.path().to_owned(), module.source().to_vec())];
                let written = experiment::write_all(&files, context).await;
                written.map_err(|(end, detail)| Stop::End(end, detail))?;
                work.code.modules.insert(module.path().to_owned(), module);
                Ok(())
            }
        }
    }
}

/// How the attempt ends, its results reported.
fn finish(limit: Option<End>, outcome: Outcome, work: &Work<'_>, context: &mut Context<'_>) -> Ended {
    let mut said: Vec<String> = work.faults.values().cloned().collect();
    said.extend(outcome.failures.iter().map(|failure| format!("{}: {}", failure.key, failure.what)));
    let detail = (!said.is_empty()).then(|| said.join("; "));
    let complete = outcome.answer.len() == work.task.experiments.len();
    let none = outcome.answer.is_empty() && !work.task.experiments.is_empty();
    if let Some((end, why)) = &outcome.stopped
        && end.is_infrastructure()
    {
        return (*end, why.clone());
    }
    if !none {
        experiment::answer(outcome.answer, context);
    }
    match (outcome.stopped, limit) {
        (Some((end, why)), _) => (end, why),
        (None, Some(end)) if !complete => (end, detail),
        _ if none => (End::GaveUp, detail),
        _ => (End::Answered, detail),
    }
}

fn faulted(fault: Fault) -> Ended {
    match fault {
        Fault::Lost(detail) => (End::SandboxLost, Some(detail)),
        Fault::Refused(what) => (End::TimeLimit, Some(what)),
    }
}

/// A limit is no end: what was written can be run.
fn go_on(step: Result<(), Stop>) -> Result<Option<End>, Ended> {
    match step {
        Ok(()) => Ok(None),
        Err(Stop::Limit(end)) => Ok(Some(end)),
        Err(Stop::End(end, detail)) => Err((end, detail)),
    }
}

/// The functions that are to be written again: those without code, those that the errors name, or else all.
fn to_repair(order: &[usize], work: &Work<'_>, outcome: &Outcome) -> Vec<usize> {
    let in_traceback = |place: usize| {
        let at = &work.task.functions[place].at;
        let name = at.rsplit(['.', ':']).next().unwrap_or(at).split('#').next().unwrap_or(at);
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
fn splice(function: &super::TaskFunction, code: &Code, reply: &str) -> Result<Module, String> {
    let wanted = Wanted::new(function, code)?;
    let module = code.modules.get(&wanted.file).ok_or("its file is gone")?;
    let spliced = module.splice(wanted.function, reply)?;
    Module::parse(wanted.file, spliced.bytes).map_err(|error| error.to_string())
}

/// What is left of a function, its lines without the indentation of its class.
fn stub(function: &super::TaskFunction, masked: &Code) -> Result<String, String> {
    source(function, masked).ok_or_else(|| "is not there".to_owned())
}

/// What is known of the function at `function` of a file, called `name`; its description stands for a docstring.
fn described(name: &str, module: &Module, function: usize, description: &str) -> Missing {
    let class = module.functions()[function].class.as_deref();
    let called =
        class.map_or_else(|| format!("function `{name}`"), |class| format!("method `{name}` of the class `{class}`"));
    let docstring = module.docstring(function).unwrap_or_default();
    let text = docstring.trim_start_matches(|character: char| character.is_ascii_alphabetic());
    let text = text.trim_matches(['"', '\'']).trim();
    let lines = if text.is_empty() { description.trim() } else { text }.lines();
    Missing { called, header: module.header(function), docstring: lines.map(|line| line.trim().to_owned()).collect() }
}

/// A function's lines as they are in the code.
fn source(function: &super::TaskFunction, code: &Code) -> Option<String> {
    let wanted = Wanted::new(function, code).ok()?;
    let module = code.modules.get(&wanted.file)?;
    let it = module.functions().get(wanted.function)?;
    let bytes = module.source();
    let start = bytes[..it.whole.start].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let text = String::from_utf8_lossy(&bytes[start..it.body.end]).into_owned();
    let indent = text[..text.len() - text.trim_start_matches([' ', '\t']).len()].to_owned();
    Some(text.lines().map(|line| line.strip_prefix(indent.as_str()).unwrap_or(line)).collect::<Vec<_>>().join("\n"))
}

/// What is shown of the function's file, and what of its functions is only named: its outline, of a long one the part
/// around the function; all of it where all code is to be shown, or only its imports and the function where none is.
/// Small models copy a file that they are shown.
fn shown(module: &Module, function: usize, choice: CodeChoice) -> (String, Vec<String>) {
    let text = String::from_utf8_lossy(module.source()).into_owned();
    if choice == CodeChoice::Full {
        return (text, Vec::new());
    }
    // The line that stands for the missing code is copied by small models, too.
    let unmasked = |text: &str| {
        let lines = text.split_inclusive('\n').filter(|line| line.trim() != STAND_IN);
        lines.collect::<String>()
    };
    let (outline, left_out) = outline(module, function);
    let outline = unmasked(&outline);
    if choice != CodeChoice::None && outline.len() <= MOST_SHOWN {
        return (outline, left_out);
    }
    let it = &module.functions()[function];
    let imports: Vec<&str> =
        text.lines().filter(|line| line.starts_with("import ") || line.starts_with("from ")).collect();
    // Bytes and characters differ only in files that are not UTF-8; the part is then found by lines.
    let lines: Vec<&str> = text.lines().collect();
    let around = if choice == CodeChoice::None { 0 } else { 60 };
    let own = it.first_line.saturating_sub(1 + it.decorators.len());
    let first = own.saturating_sub(around);
    let end = (it.last_line + around).min(lines.len());
    let class = it.class.as_ref().map(|class| {
        let class = class.rsplit('.').next().unwrap_or(class);
        let begins =
            |line: &&&str| line.trim_start().strip_prefix("class ").is_some_and(|rest| rest.starts_with(class));
        lines[..first.min(lines.len())]
            .iter()
            .rev()
            .find(begins)
            .map_or_else(String::new, |line| format!("{line}\n    # ...\n"))
    });
    let before = lines.get(first..own).unwrap_or_default().join("\n");
    let after = lines.get(it.last_line..end).unwrap_or_default().join("\n");
    let part = format!("{before}\n{}\n{after}\n", place_of(module, it));
    let part = format!("{}\n\n# ...\n\n{}{part}\n", imports.join("\n"), class.unwrap_or_default());
    (unmasked(&part), Vec::new())
}

/// The file without functions, and what the others are: signatures with the first lines of their docstrings. They are no
/// code with the bodies left out, because a small model leaves the body of its own out, too. What says what the object holds
/// stays: constructors, and other methods that set attributes, of the function's class and its bases.
fn outline(module: &Module, function: usize) -> (String, Vec<String>) {
    let (functions, source) = (module.functions(), module.source());
    let target = &functions[function];
    let family = target.class.as_deref().map_or_else(Vec::new, |class| family(module, class));
    let stays = |index: usize| {
        let it = &functions[index];
        let related = it.class.as_deref().is_some_and(|class| family.iter().any(|name| name == last(class)));
        it.overlaps(target) || (related && sets_attributes(module, it))
    };
    let (mut bytes, mut at, mut left_out) = (Vec::new(), 0, Vec::new());
    for (index, it) in functions.iter().enumerate().filter(|(_, it)| it.parent.is_none()) {
        if (stays(index) && index != function) || it.whole.start < at {
            continue;
        }
        bytes.extend_from_slice(source[at..it.whole.start].trim_ascii_end());
        bytes.extend_from_slice(b"\n\n");
        if index == function {
            bytes.extend_from_slice(format!("{}\n\n", place_of(module, it)).as_bytes());
        } else {
            left_out.push(signature(module, index));
        }
        let rest = &source[it.body.end.max(it.whole.end)..];
        at = source.len() - rest.len() + rest.iter().take_while(|&&byte| byte == b'\n' || byte == b'\r').count();
    }
    bytes.extend_from_slice(&source[at..]);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    while text.contains("\n\n\n\n") {
        text = text.replace("\n\n\n\n", "\n\n\n");
    }
    (format!("{}\n", text.trim_matches('\n')), left_out)
}

/// A class and those of its bases that are in the file, by their last names.
fn family(module: &Module, class: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(module.source());
    let mut found = vec![last(class).to_owned()];
    let mut at = 0;
    while let Some(name) = found.get(at).cloned() {
        at += 1;
        let header = |line: &str| {
            line.trim_start().strip_prefix("class ")?.strip_prefix(&name)?.strip_prefix('(').map(str::to_owned)
        };
        for base in text
            .lines()
            .filter_map(header)
            .flat_map(|rest| rest.split([',', ')']).map(|it| last(it.trim()).to_owned()).collect::<Vec<_>>())
        {
            let is_here = module.functions().iter().any(|it| it.class.as_deref().map(last) == Some(base.as_str()));
            if is_here && !found.contains(&base) {
                found.push(base);
            }
        }
    }
    found
}

/// Whether a method says what its object holds: the constructor, or a short one that sets attributes.
fn sets_attributes(module: &Module, method: &Function) -> bool {
    let sets = |line: &str| {
        let target = line.trim_start().strip_prefix("self.").and_then(|rest| rest.split_once(" = "));
        target.is_some_and(|(names, _)| !names.contains(['(', '[']))
    };
    let body = String::from_utf8_lossy(&module.source()[method.body.clone()]);
    method.name.ends_with(".__init__") || (body.lines().count() <= MOST_LINES && body.lines().any(sets))
}

/// What stands where the missing function was.
fn place_of(module: &Module, function: &Function) -> String {
    let before = &module.source()[..function.whole.start];
    let depth = before.iter().rev().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    let depth = " ".repeat(depth);
    let name = function.name.rsplit('.').next().unwrap_or(&function.name);
    format!("{depth}# `{name}` goes here.")
}

/// A function in a line: its name, its parameters, the first line of its docstring.
fn signature(module: &Module, index: usize) -> String {
    let header = module.header(index).split_whitespace().collect::<Vec<_>>().join(" ");
    let parameters = header.find('(').map_or("()", |at| header[at..].trim_end_matches(':'));
    let docstring = module.docstring(index).unwrap_or_default();
    let quote = |character: char| character == '"' || character == '\'' || character.is_whitespace();
    let words = docstring.trim_matches(quote).lines().next().map_or_else(String::new, |line| format!(": {line}"));
    format!("`{}{parameters}`{words}", module.functions()[index].name)
}

/// All other files, whole.
fn others(code: &Code, own: &Path) -> Vec<(String, String)> {
    let others = code.modules.iter().filter(|(path, _)| path.as_path() != own);
    others
        .map(|(path, module)| (path.display().to_string(), String::from_utf8_lossy(module.source()).into_owned()))
        .collect()
}

/// The last part of a dotted name.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_method_s_file_what_says_what_the_object_holds_is_shown_and_else_signatures() {
        let file = "class Policy:\n    def start(self, n):\n        self.sums, self.counts = zeros(2, n)\n\n    def see(self, x):\n        self.sums[x] = 1\n\n\n\
                    class Other:\n    def __init__(self):\n        self.x = 1\n\n\n\
                    class Best(Policy):\n    def __init__(self):\n        self.width = 2\n\n    def index(self):\n        \"\"\"An index.\"\"\"\n        raise NotImplementedError\n";
        let module = Module::parse("policies.py", file.into()).unwrap();
        let (text, left_out) = shown(&module, module.find("Best.index").unwrap(), CodeChoice::Bm25);
        assert_eq!(
            text,
            "class Policy:\n    def start(self, n):\n        self.sums, self.counts = zeros(2, n)\n\n\
             class Other:\n\n\
             class Best(Policy):\n    def __init__(self):\n        self.width = 2\n\n    # `index` goes here.\n"
        );
        assert_eq!(left_out, ["`Policy.see(self, x)`", "`Other.__init__(self)`"]);
    }
}
