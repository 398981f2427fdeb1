//! Checks that the parts of a paper fit together, without running anything.

use std::collections::BTreeSet;
use std::path::Path;

use super::problem::Problem;
use super::unfinished::unfinished;
use super::{GoldValues, LoadedPaper, Protocol, copies, sections};
use crate::error::Error;
use crate::files::readable_text;
use crate::tolerance::FEWEST_REPEATS;

/// Checks a loaded paper for runs of this protocol, without building or running anything. `autoexperiment check` prints
/// the problems, and a run refuses fatal ones.
#[must_use]
pub fn check(loaded: &LoadedPaper, protocol: Protocol) -> Vec<Problem> {
    let mut problems = unfinished(loaded);
    problems.extend(contradictions(loaded, protocol));
    problems
}

/// Returns the problems that [`check`] finds, except for placeholders that a person must still fill in.
#[must_use]
pub fn contradictions(loaded: &LoadedPaper, protocol: Protocol) -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(copies::listed(loaded).into_iter().map(Problem::error));
    functions(loaded, &mut problems);
    passages(loaded, &mut problems);
    if loaded.dependencies.is_none() {
        problems.push(Problem::warning(
            Error::suite("the dependency matrix has not been measured: every sample has all experiments as its tests")
                .at(loaded.dir.join("dependencies.json"), None),
        ));
    }
    if let Some(gone) =
        loaded.dependencies.as_ref().map(|dependencies| &dependencies.gone).filter(|gone| !gone.is_empty())
    {
        problems.push(Problem::warning(
            Error::suite(format!("the manifest has no {}", gone.join(", ")))
                .at(loaded.dir.join("dependencies.json"), None)
                .hint(format!("measure again with `autoexperiment verify {}`", loaded.paper.id)),
        ));
    }
    let unmeasured = loaded.dependencies.as_ref().map(|matrix| matrix.unmeasured(&loaded.paper)).unwrap_or_default();
    if !unmeasured.is_empty() {
        problems.push(Problem::warning(
            Error::suite(format!(
                "the dependency matrix has no experiment `{}`: every sample has it as a test",
                unmeasured.join("`, `")
            ))
            .at(loaded.dir.join("dependencies.json"), None)
            .hint(format!("measure again with `autoexperiment verify {}`", loaded.paper.id)),
        ));
    }
    if let Err(error) = loaded.refuse_results() {
        problems.push(Problem::error(error));
    }
    gold(loaded, protocol, &mut problems);
    leaked_gold(loaded, &mut problems);
    files(loaded, &mut problems);
    hidden(loaded, &mut problems);
    problems
}

fn functions(loaded: &LoadedPaper, problems: &mut Vec<Problem>) {
    let manifest = loaded.dir.join("paper.toml");
    let protected = loaded.paper.protected_set();
    if loaded.paper.units.is_empty() {
        problems.push(Problem::error(Error::suite("no functions").at(&manifest, None)));
    }
    if loaded.paper.experiments.is_empty() {
        problems.push(Problem::error(Error::suite("no experiments").at(&manifest, None)));
    }
    for (place, unit) in loaded.paper.units.iter().enumerate() {
        if let Err(error) = loaded.prove_mask(place) {
            problems.push(Problem::error(error));
        }
        let kind = unit.kind();
        if protected.is_match(loaded.source(place).path()) {
            problems.push(Problem::error(
                Error::suite(format!("{kind} `{}` is in a protected file", unit.at)).at(&manifest, None).hint(
                    "verification ignores an agent's changes to protected files: take the file out of `protected`, or leave the \
                     function out",
                ),
            ));
        }
        if loaded.dependencies.is_some() && loaded.tests(&[place]).is_empty() {
            problems.push(Problem::error(
                Error::suite(format!("no experiment needs {kind} `{}`", unit.at))
                    .at(&manifest, None)
                    .hint("leave it out, or add an experiment that it matters to"),
            ));
        }
    }
}

/// Checks that the manifest names passages of the paper for each function or region to mask, and that each passage is a
/// heading of the paper's text.
fn passages(loaded: &LoadedPaper, problems: &mut Vec<Problem>) {
    let headings: BTreeSet<&str> = sections(&loaded.text).into_iter().map(|section| section.heading).collect();
    for unit in &loaded.paper.units {
        let kind = unit.kind();
        if unit.passages.is_empty() {
            problems.push(Problem::warning(
                Error::suite(format!("{kind} `{}` has no passages", unit.at))
                    .at(loaded.dir.join("paper.toml"), None)
                    .hint(format!("list in `passages` the headings of `paper.md` below which the {kind} is described")),
            ));
        }
        for passage in &unit.passages {
            if passage.is_empty() || !headings.contains(passage.as_str()) {
                problems.push(Problem::error(
                    Error::suite(format!("{kind} `{}`: the text has no heading `{passage}`", unit.at))
                        .at(loaded.dir.join("paper.toml"), None),
                ));
            }
        }
    }
}

/// Checks that gold has results of every experiment of the protocol and of nothing else. The results must come from the
/// experiment's current command, and have enough repeats.
fn gold(loaded: &LoadedPaper, protocol: Protocol, problems: &mut Vec<Problem>) {
    let path = loaded.dir.join("gold.json");
    let full = if protocol == Protocol::Full { " --full" } else { "" };
    let hint = format!("record it with `autoexperiment gold {}{full}`", loaded.paper.id);
    let results = loaded.gold.as_ref().and_then(|gold| gold.results.get(&protocol));
    let Some(results) = results else {
        problems.push(Problem::error(Error::suite("no gold").at(path, None).hint(hint)));
        return;
    };
    for experiment in &loaded.paper.experiments {
        match results.get(&experiment.id) {
            None => problems.push(Problem::error(
                Error::suite(format!("experiment `{}` has no gold", experiment.id)).at(&path, None).hint(&hint),
            )),
            Some(gold) => {
                if Ok(&gold.command) != experiment.command_line(protocol).as_ref() {
                    problems.push(Problem::error(
                        Error::suite(format!(
                            "gold of experiment `{}` was recorded with another command",
                            experiment.id
                        ))
                        .at(&path, None)
                        .hint(&hint),
                    ));
                }
                if experiment.tolerance.is_stochastic() && gold.repeats.len() < FEWEST_REPEATS {
                    problems.push(Problem::error(
                        Error::suite(format!(
                            "gold of experiment `{}` has {} stored repeats, and its tolerance `stochastic` needs {FEWEST_REPEATS} or more",
                            experiment.id,
                            gold.repeats.len()
                        ))
                        .at(&path, None)
                        .hint(&hint),
                    ));
                }
                if let Some(tolerance) = experiment.tolerance.nearly_exceeded_by(gold.spread) {
                    problems.push(Problem::warning(
                        Error::suite(format!(
                            "experiment `{}` varies by {:.1e} between repeats, close to its tolerance of {}",
                            experiment.id, gold.spread, tolerance
                        ))
                        .at(&path, None),
                    ));
                }
            }
        }
    }
    for id in results.keys() {
        if !loaded.paper.experiments.iter().any(|experiment| experiment.id == *id) {
            problems.push(Problem::warning(
                Error::suite(format!("gold of `{id}`, which is not an experiment")).at(&path, None).hint(&hint),
            ));
        }
    }
}

/// Checks that the texts that agents read contain no gold value.
fn leaked_gold(loaded: &LoadedPaper, problems: &mut Vec<Problem>) {
    let look = GoldValues::new(loaded);
    let mut leaks = look.in_paper(loaded);
    let hidden = loaded.paper.hidden_set();
    let is_shown = |path: &Path| !path.strip_prefix(&loaded.repo_dir).is_ok_and(|path| hidden.is_match(path));
    let entries = walkdir::WalkDir::new(&loaded.repo_dir).sort_by_file_name().into_iter().flatten();
    for entry in entries.filter(|entry| is_shown(entry.path())) {
        let readable = entry.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() < LARGEST_TEXT);
        let bytes = readable.then(|| std::fs::read(entry.path()).ok()).flatten();
        if let Some(text) = bytes.as_deref().and_then(readable_text) {
            leaks.extend(look.in_file(entry.path(), &text));
        }
    }
    problems.extend(leaks.into_iter().map(Problem::error));
}

/// Files of this size in bytes or more are not searched for gold. Such files are data, and a forgotten file with
/// results is shorter.
const LARGEST_TEXT: u64 = 1_000_000;

/// Checks that the env has its `environment.yml`, that a manifest with a `build` gives the interpreter's `abi`, and
/// that every protected or hidden glob matches a file.
fn files(loaded: &LoadedPaper, problems: &mut Vec<Problem>) {
    let yml = loaded.env_dir.join("environment.yml");
    if !yml.is_file() {
        problems.push(Problem::error(Error::suite("no environment file").at(yml, None)));
    }
    if loaded.paper.build.is_some() && loaded.paper.abi.is_none() {
        let env = loaded.paper.env.as_str();
        problems.push(Problem::warning(
            Error::suite(
                "the paper's `build` command makes files for one Python version, and the manifest does not say which",
            )
            .at(loaded.dir.join("paper.toml"), None)
            .hint(format!(
                "write its tag, such as `abi = \"cpython-312\"`, and pin that version in envs/{env}/environment.yml; \
                     otherwise gold can come from another interpreter than a run's"
            )),
        ));
    }
    let manifest = loaded.dir.join("paper.toml");
    for glob in loaded.paper.protected.iter().filter(|glob| !matches_file(loaded, glob)) {
        let error = Error::suite(format!("protected glob `{glob}` matches no file")).at(&manifest, None);
        problems.push(Problem::warning(error));
    }
    for glob in loaded.paper.hidden.iter().filter(|glob| !matches_file(loaded, glob)) {
        problems.push(Problem::error(
            Error::suite(format!("hidden glob `{glob}` matches no file"))
                .at(&manifest, None)
                .hint("correct the glob: agents may see the file that it should hide"),
        ));
    }
}

/// Whether a glob matches a file of the repo.
fn matches_file(loaded: &LoadedPaper, glob: &str) -> bool {
    let Ok(matcher) = globset::Glob::new(glob).map(|glob| glob.compile_matcher()) else { return true };
    walkdir::WalkDir::new(&loaded.repo_dir)
        .into_iter()
        .flatten()
        .filter(|entry| !entry.file_type().is_dir())
        .any(|entry| entry.path().strip_prefix(&loaded.repo_dir).is_ok_and(|path| matcher.is_match(path)))
}

/// Checks that experiments which run hidden files are hidden themselves, and that the body of a masked function is in
/// no other file that agents see.
fn hidden(loaded: &LoadedPaper, problems: &mut Vec<Problem>) {
    let (manifest, hidden) = (loaded.dir.join("paper.toml"), loaded.paper.hidden_set());
    for experiment in loaded.paper.experiments.iter().filter(|experiment| !experiment.hidden) {
        let mut words =
            experiment.command.split(|letter: char| letter.is_whitespace() || "\"';&|()<>".contains(letter));
        let named = words.find(|word| !word.is_empty() && hidden.is_match(word.trim_start_matches("./")));
        if let Some(file) = named {
            problems.push(Problem::error(
                Error::suite(format!("experiment `{}` runs the hidden file `{file}`", experiment.id))
                    .at(&manifest, None)
                    .hint("agents cannot run it: write `hidden = true` in the experiment"),
            ));
        }
    }
    problems.extend(copies::visible(loaded).into_iter().map(Problem::warning));
}
