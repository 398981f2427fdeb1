//! `random`: reports plausible numbers and writes no code. None of its results may ever pass verification.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::agent::agents::mutant::share;
use crate::agent::{Agent, AttemptEnd, Context, End, Replication, Task, TaskExperiment, experiment};
use crate::sample::MASKED;
use crate::suite::ResultRule;

/// The `random` agent.
#[derive(Debug)]
pub struct Random;

#[async_trait]
impl Agent for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn needs_model(&self) -> bool {
        false
    }

    fn only(&self) -> Option<&'static str> {
        Some(MASKED)
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        let Some(task) = task.part::<Replication>() else { return Replication::missing(self.name()) };
        let seed = context.sampling.seed.unwrap_or_default();
        let results: Map<String, Value> =
            task.experiments.iter().map(|it| (it.key.clone(), made_up(it, seed))).collect();
        experiment::answer(results, context);
        End::Answered.into()
    }
}

/// Builds an answer in the JSON shape that the experiment's description shows.
fn made_up(experiment: &TaskExperiment, seed: u64) -> Value {
    let mut numbers = NumberGenerator { seed, id: &experiment.id, count: 0 };
    if let ResultRule::Regex(names) = &experiment.result {
        return names.keys().map(|name| (name.clone(), numbers.next())).collect::<Map<_, _>>().into();
    }
    let shown = experiment.description.find('{').map_or("", |start| &experiment.description[start..]);
    let mut characters = shown.chars().peekable();
    object(&mut characters, &mut numbers, 0)
}

/// Generator of numbers between 0.01 and 100, uniform on a logarithmic scale.
struct NumberGenerator<'a> {
    seed: u64,
    id: &'a str,
    count: u32,
}

impl NumberGenerator<'_> {
    fn next(&mut self) -> Value {
        self.count += 1;
        let share = share(self.seed, &self.count.to_string(), self.id);
        let number = 10_f64.powf(share.mul_add(4.0, -2.0));
        json!((number * 1e4).round() / 1e4)
    }
}

/// Parses a shape such as `{"a": {"b": x, ...}, ...}` and fills it in: quoted texts become keys, every other value
/// becomes a number.
fn object(
    text: &mut std::iter::Peekable<std::str::Chars<'_>>,
    numbers: &mut NumberGenerator<'_>,
    depth: usize,
) -> Value {
    let mut found = Map::new();
    text.next();
    let mut key: Option<String> = None;
    while let Some(&character) = text.peek() {
        if character == '{' && depth < 8 {
            let inner = object(text, numbers, depth + 1);
            if let Some(key) = key.take() {
                found.insert(key, inner);
            }
            continue;
        }
        text.next();
        if character == '}' {
            break;
        }
        if character == '"' {
            let name: String = std::iter::from_fn(|| text.next().filter(|it| *it != '"')).collect();
            if let Some(before) = key.replace(name) {
                found.insert(before, numbers.next());
            }
        }
    }
    if let Some(key) = key {
        found.insert(key, numbers.next());
    }
    found.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::tests::support::task;

    #[test]
    fn the_random_answer_has_the_requested_shape() {
        let mut experiment = task().experiments.remove(0);
        experiment.description =
            "Rates. Answer: {\"a, k=1\": {\"mean\": x, \"min\": x}, ..., \"area\": x} per row.".into();
        let made = made_up(&experiment, 1);
        let keys: Vec<&String> = made.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["a, k=1", "area"]);
        assert_eq!(made["a, k=1"].as_object().unwrap().len(), 2);
        assert!(made["area"].as_f64().is_some_and(|number| (0.01..=100.0).contains(&number)));
        assert_ne!(made, made_up(&experiment, 2));
        experiment.description = "{{{{{{{{{{{{\"a".into();
        assert!(made_up(&experiment, 1).is_object());
    }
}
