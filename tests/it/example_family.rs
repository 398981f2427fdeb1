//! A whole family of tasks in one file, as `docs/new-family.md` explains it: "make `sh answer.sh` print the right
//! numbers". A puzzle withholds n of its hints, and each right number counts for its share of the score.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use autoexperiment::agent::{Check, Solution, Task};
use autoexperiment::env::Env;
use autoexperiment::error::{Error, Result};
use autoexperiment::run::SampleDraw;
use autoexperiment::run::event::Observer;
use autoexperiment::run::family::{
    CheckFacts, Family, Item, ItemFacts, Question, Ready, SampleNames, SampleParts, ScoringBasis, ScoringInput, Staged,
};
use autoexperiment::run::machine::Machine;
use autoexperiment::sample::{Nesting, Sample, Withheld, draw};
use autoexperiment::score::{
    Expected, ExperimentRuns, Rule, Tolerance, Verdict, placed_answer, score_answer, score_results,
};
use autoexperiment::suite::ResultRule;
use autoexperiment::workspace::Snapshot;
use serde_json::{Map, Value, json};

/// The family of puzzles.
pub struct Puzzles;

/// A puzzle: a file of numbers, the questions about them, and hints.
struct Puzzle {
    id: &'static str,
    numbers: &'static str,
    /// The lines `name=number` that `answer.sh` must print.
    right: &'static [(&'static str, i64)],
    hints: &'static [&'static str],
    solution: &'static str,
}

const ALL: [Puzzle; 2] = [
    Puzzle {
        id: "shell.extremes",
        numbers: "7\n2\n9\n",
        right: &[("least", 2), ("most", 9), ("sum", 18)],
        hints: &["`sort -n` sorts numbers", "`head -1` is the first line", "`paste -sd+` joins lines by a plus"],
        solution: "echo least=$(sort -n numbers.txt | head -1)\necho most=$(sort -n numbers.txt | tail -1)\n\
                   echo sum=$(($(paste -sd+ numbers.txt)))\n",
    },
    Puzzle {
        id: "shell.count",
        numbers: "4\n4\n1\n",
        right: &[("lines", 3), ("different", 2)],
        hints: &["`wc -l` counts lines", "`sort -u` leaves out what is there twice"],
        solution: "echo lines=$(wc -l < numbers.txt)\necho different=$(sort -u numbers.txt | wc -l)\n",
    },
];

impl Family for Puzzles {
    fn name(&self) -> &'static str {
        "puzzles"
    }

    fn axis(&self) -> &'static str {
        "withheld hints"
    }

    fn extent(&self, n: usize) -> String {
        format!("{n} of its hints withheld")
    }

    fn sample(&self, id: &str) -> Result<Sample> {
        Ok(id.parse::<Withheld>()?.sample("puzzles", "shell"))
    }

    fn items(&self, _suite: &Path, asked: &[String]) -> Result<Vec<String>> {
        let known = ALL.map(|puzzle| puzzle.id.to_owned());
        match asked.iter().find(|id| !known.contains(id)) {
            Some(id) => Err(Error::usage(format!("there is no puzzle `{id}`"))),
            None if asked.is_empty() => Ok(known.to_vec()),
            None => Ok(asked.to_vec()),
        }
    }

    fn load(&self, _suite: &Path, item: &str, _basis: ScoringBasis) -> Result<Arc<dyn Item>> {
        let puzzle = ALL.into_iter().find(|puzzle| puzzle.id == item);
        Ok(Arc::new(puzzle.ok_or_else(|| Error::suite(format!("there is no puzzle `{item}`")))?))
    }
}

impl Puzzle {
    /// Returns the indices of a sample's withheld hints.
    fn withheld(&self, sample: &Sample) -> Result<Vec<usize>> {
        let units = sample.id().parse::<Withheld>()?.units;
        match units.iter().find(|&&hint| hint >= self.hints.len()) {
            Some(hint) => Err(Error::usage(format!("puzzle `{}` has no hint {hint}", self.id))),
            None => Ok(units),
        }
    }

    fn expected(&self) -> [Expected; 1] {
        let gold: Map<String, Value> =
            self.right.iter().map(|(name, number)| ((*name).to_owned(), json!(number))).collect();
        [Expected { id: "print".into(), key: "numbers".into(), gold: gold.into(), tolerance: Tolerance::default() }]
    }

    /// Gives partial credit: the share of numbers that are right.
    fn graded(mut verdict: Verdict) -> Verdict {
        let values: Vec<bool> = verdict.experiments.iter().flat_map(|it| &it.values).map(|value| value.pass).collect();
        let right = values.iter().filter(|right| **right).count();
        verdict.score = Some(right as f64 / values.len().max(1) as f64);
        verdict.measures.insert("right".to_owned(), right as f64);
        verdict
    }

    fn instructions(&self, withheld: &[usize]) -> String {
        let names: Vec<String> = self.right.iter().map(|(name, _)| format!("`{name}=NUMBER`")).collect();
        let given = self.hints.iter().enumerate().filter(|(place, _)| !withheld.contains(place));
        let hints: String = given.flat_map(|(_, hint)| ["\n- ", hint]).collect();
        format!("Write `answer.sh`, so that `sh answer.sh` prints {} of `numbers.txt`.\n{hints}", names.join(", "))
    }

    fn check(&self) -> Check {
        let rules = self.right.iter().map(|(name, _)| ((*name).to_owned(), format!("{name}=(-?[0-9]+)")));
        Check {
            id: "print".into(),
            key: "numbers".into(),
            command: "sh answer.sh".into(),
            time_limit: 10.0,
            result: ResultRule::Regex(rules.collect::<BTreeMap<_, _>>()),
        }
    }
}

#[async_trait]
impl Item for Puzzle {
    fn id(&self) -> &str {
        self.id
    }

    fn digest(&self) -> String {
        format!("{:?}{:?}{:?}", self.numbers, self.right, self.hints)
    }

    fn count(&self, n: usize) -> Option<u128> {
        Nesting::flat(self.hints.len()).count(n)
    }

    fn draw(&self, asked: &SampleDraw, seed: u64) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for n in asked.counts(self.hints.len()) {
            for units in draw(self.id, &Nesting::flat(self.hints.len()), n, asked.limit, seed)? {
                samples.push(Withheld { item: self.id.to_owned(), units }.sample("puzzles", "shell"));
            }
        }
        Ok(samples)
    }

    fn require(&self, sample: &Sample) -> Result<()> {
        self.withheld(sample).map(drop)
    }

    fn reported(&self, _sample: &Sample, input: &ScoringInput<'_>) -> Result<Verdict> {
        Ok(Self::graded(score_answer(Rule::Strict, &self.expected(), input.answer, &ExperimentRuns::new())))
    }

    fn verified(&self, _sample: &Sample, input: &ScoringInput<'_>) -> Result<Verdict> {
        let read =
            input.results.iter().filter_map(|(id, outcome)| Some((id.clone(), vec![outcome.get("result")?.clone()])));
        Ok(Self::graded(score_results(Rule::Strict, &self.expected(), &read.collect(), &BTreeMap::new())))
    }

    async fn prepare(self: Arc<Self>, machine: &Machine, _: bool, _: &dyn Observer) -> Result<Box<dyn Ready>> {
        let folder = machine.cache.join("puzzles").join(self.id);
        let failed = |error| Error::io("write", &folder, error);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        std::fs::write(folder.join("numbers.txt"), self.numbers).map_err(failed)?;
        let snapshot = Snapshot::take(&folder, &machine.cache, machine.backend.owner())?;
        let env = Env {
            backend: "none",
            digest: String::new(),
            python: String::new(),
            prefix: PathBuf::new(),
            read_only: Vec::new(),
            variables: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            hold: None,
        };
        Ok(Box::new(ReadyPuzzle { puzzle: self, snapshot, env }))
    }

    fn question(&self, sample: &Sample) -> Result<Question> {
        Ok(Question {
            sample: sample.id().to_owned(),
            task: self.instructions(&self.withheld(sample)?),
            before: "the folder as it was given".into(),
            criterion: "prints the right numbers".into(),
            files: Vec::new(),
            answers: vec![("numbers".to_owned(), Tolerance::default())],
        })
    }

    fn answered(&self, _sample: &Sample, answer: Option<&str>) -> Map<String, Value> {
        placed_answer(&self.expected(), answer)
    }

    fn facts(&self) -> ItemFacts {
        let check =
            CheckFacts { id: "print".into(), description: "The numbers".into(), command: "sh answer.sh".into() };
        ItemFacts { title: format!("Puzzle {}", self.id), experiments: vec![check], ..ItemFacts::default() }
    }

    fn parts(&self, sample: &Sample) -> Result<SampleParts> {
        Ok(SampleParts { asked: Some(self.instructions(&self.withheld(sample)?)), ..SampleParts::default() })
    }

    fn listed(&self, sample: &Sample) -> Result<SampleNames> {
        let units = self.withheld(sample)?.into_iter().map(|hint| self.hints[hint].to_owned()).collect();
        Ok(SampleNames { units, checks: vec!["print".into()] })
    }
}

/// A puzzle with its folder on this machine.
struct ReadyPuzzle {
    puzzle: Arc<Puzzle>,
    snapshot: Snapshot,
    env: Env,
}

impl Ready for ReadyPuzzle {
    fn item(&self) -> &dyn Item {
        self.puzzle.as_ref()
    }

    fn repo(&self) -> &str {
        self.snapshot.digest()
    }

    fn env(&self) -> &Env {
        &self.env
    }

    fn stage(&self, sample: &Sample, attempt: u32) -> Result<Staged<'_>> {
        let puzzle = &self.puzzle;
        let task = Task {
            sample: sample.id().to_owned(),
            attempt,
            instructions: puzzle.instructions(&puzzle.withheld(sample)?),
            answer: "one JSON object with the key `numbers`, which holds an object of the numbers by name".into(),
            solution: Solution {
                files: vec![("answer.sh".into(), puzzle.solution.into())],
                checks: vec![puzzle.check()],
                ..Solution::default()
            },
            forgery: None,
            part: None,
        };
        Ok(Staged { task, snapshot: &self.snapshot, files: Vec::new(), checks: vec![puzzle.check()] })
    }
}
