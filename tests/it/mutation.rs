//! Mutants of the tiny suite's functions, run against its experiments.

use std::path::Path;
use std::sync::Arc;

use crate::support::Lab;
use autoexperiment::audit::Bench;
use autoexperiment::audit::mutation::{MutantDraw, Mutation, measure, score};
use autoexperiment::error::{Error, FailureKind, Result};
use autoexperiment::masked::ready::ReadyPaper;
use autoexperiment::run::event::{Observer, RunEvent};
use autoexperiment::run::gpus::Graphics;
use autoexperiment::run::machine::Machine;
use autoexperiment::run::results::Results;
use autoexperiment::run::scratch::Scratch;
use autoexperiment::sandbox::{SandboxKind, SandboxLimits, choose};
use autoexperiment::suite::{LoadedPaper, Protocol, Suite};

struct Silent;

impl Observer for Silent {
    fn on(&self, _: RunEvent) {}
}

/// Measures the mutants of these functions. Also returns how many trials were actually run.
fn mutate(lab: &Lab, functions: &[usize], mutants: usize) -> Result<(Vec<Mutation>, u64)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let machine = Arc::new(Machine {
            cache: lab.path("cache"),
            backend: choose(SandboxKind::Local).await?,
            scratch: Scratch::create(&lab.path("scratch"))?,
            envs: Arc::new(autoexperiment::env::Venv::new()),
            offline: false,
            limits: SandboxLimits::default(),
            hidden: Vec::new(),
            results: Results::none(),
            graphics: Graphics::default(),
        });
        // All labs share envs, but not the results of trials.
        std::os::unix::fs::symlink(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/envs"), lab.path("cache/envs"))
            .ok();
        let loaded = LoadedPaper::load(&Suite::open(&lab.path(""))?, "tiny")?;
        let ready = ReadyPaper::prepare(loaded, Protocol::Curtailed, &machine, &Silent).await?;
        let bench = Arc::new(Bench::new(ready, machine, 2, false)?);
        let mutations = measure(&bench, functions, MutantDraw { mutants, seed: 0 }, &Silent).await?;
        Ok((mutations, bench.made()))
    })
}

/// A line of `geometric` that has no effect, and its number in the file.
const BLIND: (&str, usize) = ("    spare = len(values) + 1\n", 14);

fn lab_with_a_blind_line() -> Lab {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.path("cache")).unwrap();
    lab.edit("repos/tiny/tiny/means.py", "    logarithms", &format!("{}    logarithms", BLIND.0));
    lab
}

#[test]
fn mutants_of_code_that_matters_are_killed_and_the_others_survive_until_they_are_marked() {
    let lab = lab_with_a_blind_line();
    let (mutations, made) = mutate(&lab, &[0, 1], 1000).unwrap();
    let [arithmetic, geometric] = &mutations[..] else { unreachable!() };
    assert_eq!(arithmetic.survivors, []);
    assert_eq!((arithmetic.made, arithmetic.killed()), (arithmetic.possible, arithmetic.possible));
    assert!(arithmetic.made >= 10 && arithmetic.errors > 0 && arithmetic.values > 0, "{arithmetic:?}");
    assert!(geometric.survivors.iter().all(|survivor| survivor.line == BLIND.1), "{:#?}", geometric.survivors);
    assert_eq!(geometric.made - geometric.killed(), geometric.survivors.len());
    let plus = geometric.survivors.iter().find(|it| it.id == "operator:1.25 + -> -").unwrap();
    assert!(plus.diff.starts_with("diff --git a/tiny/means.py b/tiny/means.py\n"), "{}", plus.diff);
    let changed = "\n-    spare = len(values) + 1\n+    spare = len(values) - 1\n";
    assert!(plus.diff.contains(changed), "{}", plus.diff);
    let below_one = score(&mutations).unwrap();
    assert!(below_one < 1.0 && below_one > 0.5, "{below_one}");
    assert!(made > 20);

    let (again, made) = mutate(&lab, &[0, 1], 1000).unwrap();
    assert_eq!((again, made), (mutations.clone(), 0));

    let marks: Vec<String> = geometric
        .survivors
        .iter()
        .map(|it| format!("{{ mutant = {:?}, reason = \"`spare` is not read\" }}", it.id))
        .collect();
    let marks = format!("equivalent = [{}]\n", marks.join(", "));
    let after = "description = \"The geometric mean, by logarithms.\"\n";
    lab.edit("papers/tiny/paper.toml", after, &format!("{after}{marks}"));
    let (marked, _) = mutate(&lab, &[1], 3).unwrap();
    assert_eq!((marked[0].killed(), &marked[0].survivors[..], score(&marked[..1])), (3, &[][..], Some(1.0)));
}

#[test]
fn marks_of_unknown_mutants_are_errors_and_marks_of_killed_ones_are_reported() {
    let lab = lab_with_a_blind_line();
    let mark = |from: &str, to: &str| {
        lab.edit("papers/tiny/paper.toml", from, &format!("equivalent = [{{ mutant = {to:?}, reason = \"r\" }}]\n"));
    };
    let description = "description = \"The arithmetic mean.\"\n";
    lab.edit("papers/tiny/paper.toml", description, &format!("{description}mark\n"));
    mark("mark\n", "operator:4.17 / -> *");
    let error: Error = mutate(&lab, &[0], 1).unwrap_err();
    assert_eq!(error.kind, FailureKind::Suite);
    assert!(
        error.to_string().ends_with("function `tiny/means.py::arithmetic` has no mutant `operator:4.17 / -> *`"),
        "{error}"
    );
    insta::assert_snapshot!(error.hint.unwrap(), @"its code may have changed; similar ones are `operator:4.18 / -> *`, `operator:4.18 / -> //`, `operator:3.15 += -> *=`");

    lab.edit("papers/tiny/paper.toml", "operator:4.17 / -> *", "operator:4.18 / -> *");
    let (mutations, _) = mutate(&lab, &[0], 1000).unwrap();
    assert_eq!(mutations[0].wrongly_marked, ["operator:4.18 / -> *"]);
    assert_eq!((mutations[0].equivalent, score(&mutations[..1])), (0, Some(1.0)));
}

#[test]
fn mutants_are_not_measured_if_the_unchanged_repo_does_not_reproduce_its_gold() {
    let lab = lab_with_a_blind_line();
    lab.edit("repos/tiny/tiny/means.py", "total / len(values)", "total * len(values)");
    let error = mutate(&lab, &[1], 3).unwrap_err();
    assert_eq!(error.kind, FailureKind::Baseline);
    insta::assert_snapshot!(error, @"the unchanged repo fails experiment `means`: its result is not its gold");
}
