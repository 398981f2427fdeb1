//! `autoexperiment check`: checks that the suite is in order.

use std::path::Path;

use super::env;
use super::shared::{PaperOptions, PlaceOptions, SuiteOptions, print};
use crate::env::{EnvBuildOptions, cached};
use crate::error::{Error, FailureKind, Result};
use crate::masked::MaskedReplication;
use crate::run::family::{Families, Family, ScoringBasis};
use crate::sample::MASKED;
use crate::sandbox::doctor::in_sight;
use crate::suite::{LoadedPaper, PaperEvidence, Problem, Protocol, check, copies};
use crate::workspace::repo_digest;

/// Check that papers, repos and envs fit together
///
/// Checks, among other things, that nothing is left to write (`TODO`, a year of 0), that every selector names exactly
/// one function that can be masked, that passages exist, that the paper's text, title and descriptions contain no gold
/// value, that gold covers every experiment, that protected files contain no maskable function, that the env does not
/// contain the paper's own package, and that the env's lock fits its file. `run` refuses papers with errors. Warns about
/// measurements that are missing or older than the repo. Ends with exit code 3 if something is wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment check\n  autoexperiment check kmeanspp\n  \
                  autoexperiment check --family command")]
pub struct Arguments {
    #[command(flatten)]
    papers: PaperOptions,
    /// Check the items of this kind of task.
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    places: PlaceOptions,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(name) = arguments.family.as_deref().filter(|name| *name != MASKED) {
        return family(Families::standard().get(name)?.as_ref(), arguments);
    }
    let suite = arguments.suite.open()?;
    let papers = SuiteOptions::items(&MaskedReplication, suite.root(), &arguments.papers.all())?;
    let runs = std::path::PathBuf::from("runs");
    let (cache, scratch) = (arguments.places.cache()?, arguments.places.scratch());
    let private =
        [("suite", suite.root().to_owned()), ("folder of runs", runs), ("cache", cache), ("scratch folder", scratch)];
    for (what, folder) in private {
        let Some(seen) = in_sight(&[folder]).pop() else { continue };
        talk!(
            "warning: the {what} `{}` is in `{}`, which sandboxes can read: they hide it if they can; \
             if not, no run starts; `autoexperiment doctor` says which",
            seen.hidden.display(),
            seen.shown.display()
        );
    }
    let built = cached(&arguments.places.cache()?)?;
    let (mut errors, mut warnings) = (0, 0);
    for id in &papers {
        // A paper that cannot be loaded must not hide the faults of the others.
        let problems = match LoadedPaper::load(&suite, id) {
            Ok(loaded) => {
                let mut problems = check(&loaded, Protocol::Curtailed);
                problems.extend(arguments.env(&loaded)?);
                let in_env = built.iter().filter(|env| env.complete && env.id == loaded.paper.env);
                problems.extend(in_env.flat_map(|env| installed(&loaded, &env.path)).map(Problem::error));
                problems.extend(digests(&loaded));
                problems
            }
            Err(error) => vec![Problem::error(error)],
        };
        errors += problems.iter().filter(|problem| problem.fatal).count();
        warnings += problems.iter().filter(|problem| !problem.fatal).count();
        let verdict = if problems.iter().any(|problem| problem.fatal) { "wrong" } else { "ok" };
        print(&format!("{id}: {verdict}\n"))?;
        for problem in &problems {
            let kind = if problem.fatal { "error" } else { "warning" };
            // Errors may have several lines, one per fault in a file.
            for (place, line) in problem.error.to_string().lines().enumerate() {
                let kind = if place == 0 { format!("{kind}: ") } else { " ".repeat(kind.len() + 2) };
                print(&format!("  {kind}{}\n", crate::report::clean(line)))?;
            }
            if let Some(hint) = &problem.error.hint {
                print(&format!("    hint: {}\n", crate::report::clean(hint)))?;
            }
        }
    }
    if errors > 0 {
        return Err(Error::suite(format!("{errors} error(s) in {} paper(s)", papers.len())));
    }
    if warnings == 0 {
        talk!("{} paper(s) in order", papers.len());
    } else {
        talk!("{} paper(s) can be run, with {warnings} warning(s)", papers.len());
    }
    Ok(())
}

impl Arguments {
    /// Lists the problems of a paper's env that can be found without building it.
    fn env(&self, loaded: &LoadedPaper) -> Result<Vec<Problem>> {
        // Skip a missing env, because `check` reports it elsewhere.
        if !loaded.env_dir.join("environment.yml").is_file() {
            return Ok(Vec::new());
        }
        let states = env::states(&loaded.env_dir, &EnvBuildOptions::default(), &self.places.cache()?)?;
        let problem = |error: Error| match error.kind {
            FailureKind::Suite => Problem::error(error),
            _ => Problem::warning(error),
        };
        Ok(env::wrong(&loaded.paper.env, states).into_iter().map(problem).collect())
    }
}

/// Looks in a built env for a copy of the paper's own code, which would contain the masked functions. `env` is the
/// env's folder in the cache, in which the installed packages are.
fn installed(loaded: &LoadedPaper, env: &Path) -> Vec<Error> {
    let folders = std::fs::read_dir(env).into_iter().flatten().flatten().map(|entry| entry.path());
    folders.filter(|folder| folder.join("lib").is_dir()).flat_map(|prefix| copies::installed(loaded, &prefix)).collect()
}

/// Checks the items of a kind of task other than masked replication.
fn family(family: &dyn Family, arguments: &Arguments) -> Result<()> {
    let suite = arguments.suite.folder()?;
    let items = SuiteOptions::items(family, &suite, &arguments.papers.all())?;
    let mut errors = 0;
    for id in &items {
        let problems = match family.load(&suite, id, ScoringBasis::default()) {
            Ok(item) => item.problems(),
            Err(error) => vec![error],
        };
        errors += problems.len();
        print(&format!("{id}: {}\n", if problems.is_empty() { "ok" } else { "wrong" }))?;
        for problem in &problems {
            print(&format!("  error: {}\n", crate::report::clean(&problem.to_string())))?;
        }
    }
    match errors {
        0 => Ok(()),
        _ => Err(Error::suite(format!("{errors} error(s) in {} item(s)", items.len()))),
    }
}

/// Checks that the repo has not changed since gold, the dependency matrix and the results of mutants were measured, and
/// that there are results of mutants for all functions.
fn digests(loaded: &LoadedPaper) -> Vec<Problem> {
    let now = match repo_digest(&loaded.repo_dir) {
        Ok(digest) => digest,
        Err(error) => return vec![Problem::error(error)],
    };
    let path = loaded.dir.join("evidence.json");
    let evidence = match PaperEvidence::load(&path) {
        Ok(evidence) => evidence,
        Err(error) => return vec![Problem::error(error)],
    };
    let verify = format!("measure it with `autoexperiment verify {}`", loaded.paper.id);
    let changed = |what: &str, file: &str| {
        Problem::warning(Error::suite(format!("the repo has changed since {what}")).at(loaded.dir.join(file), None))
    };
    let mut problems = Vec::new();
    if loaded.gold.as_ref().is_some_and(|gold| gold.repo != now) {
        problems.push(changed("gold was recorded", "gold.json"));
    }
    if loaded.dependencies.as_ref().is_some_and(|dependencies| dependencies.repo != now) {
        let problem = changed("the dependency matrix was measured", "dependencies.json");
        problems.push(Problem { error: problem.error.hint(&verify), ..problem });
    }
    match evidence {
        None => {
            problems.push(Problem::warning(Error::suite("mutants have not been measured").at(path, None).hint(verify)));
        }
        Some(evidence) if evidence.repo != now => problems.push(changed("its mutants were run", "evidence.json")),
        Some(evidence) => {
            let missing = loaded.paper.units.iter().filter(|unit| !evidence.functions.contains_key(&unit.at));
            problems.extend(missing.map(|unit| {
                Problem::warning(
                    Error::suite(format!("no evidence of {} `{}`", unit.kind(), unit.at)).at(&path, None).hint(&verify),
                )
            }));
        }
    }
    problems
}
