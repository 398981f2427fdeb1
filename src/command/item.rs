//! A repo as an item: its samples, its scores, and the task of an attempt.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::check::problems;
use super::context::LAYERS;
use super::judge::{InstructionJudge, gave_results};
use super::loaded::LoadedCommands;
use super::manifest::Instruction;
use super::program::{AnswerProgram, find};
use super::ready::ReadyCommands;
use super::sample_id::parts;
use super::task::describe_task;
use crate::error::{Error, FailureKind, Result};
use crate::run::SampleDraw;
use crate::run::event::Observer;
use crate::run::family::{CheckFacts, Item, ItemFacts, Question, Ready, SampleNames, SampleParts, ScoringInput};
use crate::run::machine::Machine;
use crate::sample::{COMMAND, Nesting, Sample, draw};
use crate::score::{Rule, Tolerance, Verdict};
use crate::suite::PartialDate;

/// A repo with its instructions.
pub(super) struct CommandItem {
    /// The loaded instructions.
    pub loaded: Arc<LoadedCommands>,
    /// Strict or published scoring.
    pub rule: Rule,
}

impl CommandItem {
    /// Returns the instruction of a sample.
    fn instruction(&self, sample: &Sample) -> Result<&Instruction> {
        self.loaded.instruction(parts(sample.id())?.1)
    }

    fn judge(&self, sample: &Sample) -> Result<InstructionJudge<'_>> {
        let instruction = self.instruction(sample)?;
        let missing = || missing(&self.loaded.id, &format!("instruction `{}` has no gold", instruction.id));
        let gold = self.loaded.gold.as_ref().and_then(|gold| gold.results.get(&instruction.id)).ok_or_else(missing)?;
        let asked = instruction.required_arguments().map_err(Error::suite)?;
        Ok(InstructionJudge { instruction, gold, asked, rule: self.rule, reads_text: true })
    }
}

/// Returns the error for missing gold.
pub fn missing(repo: &str, what: &str) -> Error {
    Error::new(FailureKind::Baseline, format!("repo `{repo}`: {what}"))
        .hint(format!("record it with `autoexperiment gold --family command {repo}`"))
}

#[async_trait]
impl Item for CommandItem {
    fn id(&self) -> &str {
        &self.loaded.id
    }

    fn digest(&self) -> String {
        self.loaded.digest.clone()
    }

    fn scorable(&self) -> Result<()> {
        match problems(&self.loaded).into_iter().next() {
            Some(problem) => Err(missing(&self.loaded.id, &problem)),
            None => Ok(()),
        }
    }

    fn problems(&self) -> Vec<Error> {
        problems(&self.loaded).into_iter().map(Error::suite).collect()
    }

    fn count(&self, n: usize) -> Option<u128> {
        Some(if n < LAYERS.len() { self.loaded.set.instructions.len() as u128 } else { 0 })
    }

    /// Draws samples, each of one instruction. In this family, n says which documentation the agent gets with the
    /// instruction (see [`LAYERS`]), so the drawn instructions do not depend on n.
    fn draw(&self, asked: &SampleDraw, seed: u64) -> Result<Vec<Sample>> {
        if !asked.is_young(self.facts().public_since) {
            return Ok(Vec::new());
        }
        let (id, instructions) = (self.id(), &self.loaded.set.instructions);
        let drawn = draw(id, &Nesting::flat(instructions.len()), 1, asked.limit, seed)?;
        let places: Vec<usize> = drawn.into_iter().flatten().collect();
        let sample =
            |n: usize, place: usize| Sample::new(COMMAND, id, id, format!("{id}.{}_{n}", instructions[place].id), n);
        let counts = asked.counts(LAYERS.len() - 1);
        Ok(counts.into_iter().flat_map(|n| places.iter().map(move |&place| sample(n, place))).collect())
    }

    fn require(&self, sample: &Sample) -> Result<()> {
        self.instruction(sample).map(drop)
    }

    fn reported(&self, sample: &Sample, input: &ScoringInput<'_>) -> Result<Verdict> {
        Ok(self.judge(sample)?.reported(input.answer))
    }

    fn verified(&self, sample: &Sample, input: &ScoringInput<'_>) -> Result<Verdict> {
        Ok(self.judge(sample)?.verified(input.results))
    }

    async fn prepare(
        self: Arc<Self>,
        machine: &Machine,
        baseline: bool,
        observer: &dyn Observer,
    ) -> Result<Box<dyn Ready>> {
        let (loaded, rule) = (self.loaded.clone(), self.rule);
        let ready = ReadyCommands::prepare(self, loaded, rule, machine, observer).await?;
        if baseline {
            ready.check_baseline(machine, observer).await?;
        }
        Ok(Box::new(ready))
    }

    fn question(&self, sample: &Sample) -> Result<Question> {
        let instruction = self.instruction(sample)?;
        Ok(Question {
            sample: sample.id().to_owned(),
            task: describe_task(&self.loaded, instruction, sample.n()),
            before: "the repository as it was given".to_owned(),
            criterion: "does exactly what the instruction says, with the options that it names and no others"
                .to_owned(),
            files: Vec::new(),
            answers: vec![("program".to_owned(), Tolerance::default())],
        })
    }

    fn answered(&self, sample: &Sample, answer: Option<&str>) -> Map<String, Value> {
        let found = answer.zip(self.instruction(sample).ok()).map(|(answer, it)| find(answer, it.kind));
        match found {
            Some(AnswerProgram::Program(program)) => Map::from_iter([("program".to_owned(), program.code.into())]),
            Some(AnswerProgram::File(_)) | None => Map::new(),
        }
    }

    fn gave_results(&self, results: &Map<String, Value>) -> bool {
        gave_results(results)
    }

    fn facts(&self) -> ItemFacts {
        let set = &self.loaded.set;
        let experiments = set.instructions.iter().map(|instruction| CheckFacts {
            id: instruction.id.clone(),
            description: instruction.text.trim().to_owned(),
            command: instruction.gold.trim().to_owned(),
        });
        let docs: Vec<&str> = self.loaded.docs.iter().map(|(_, text)| text.as_str()).collect();
        ItemFacts {
            title: set.title.clone(),
            url: set.url.clone(),
            public_since: PartialDate::earlier(set.published, set.first_commit),
            experiments: experiments.collect(),
            text: Some(docs.join("\n\n")),
            ..ItemFacts::default()
        }
    }

    fn parts(&self, sample: &Sample) -> Result<SampleParts> {
        Ok(SampleParts {
            asked: Some(describe_task(&self.loaded, self.instruction(sample)?, sample.n())),
            ..SampleParts::default()
        })
    }

    fn listed(&self, sample: &Sample) -> Result<SampleNames> {
        let instruction = self.instruction(sample)?;
        let units = LAYERS.iter().take(sample.n()).map(|layer| (*layer).to_owned()).collect();
        let outcome = instruction.expect.outcome.then_some("outcome");
        let checks = ["kind", "exit", "arguments"].into_iter().chain(outcome).map(str::to_owned).collect();
        Ok(SampleNames { units, checks })
    }
}
