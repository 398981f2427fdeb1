//! `replies:FILE`: puts a model's stored replies in place of the masked functions and regions. No model is called: the
//! replies were collected elsewhere, and this agent only runs their code, so that it can be scored.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::agent::filled::FilledCode;
use crate::agent::{Agent, AttemptEnd, Context, End, Event, Replication, Task, experiment, repo};
use crate::code::region_name;
use crate::error::{Error, Result};
use crate::files::json_lines;
use crate::model::Role;
use crate::sample::MASKED;

/// A stored reply: one line of the file that the agent `replies:FILE` reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredReply {
    /// The paper's id.
    pub paper: String,
    /// The function or region, as in the manifest: `path/file.py::Class.method` or a region's name.
    pub unit: String,
    /// Number of the attempt that the reply is for, from 0.
    #[serde(default)]
    pub attempt: u32,
    /// The reply's text, from which the code is taken.
    pub text: String,
    /// Whether the reply passed in the benchmark that it comes from, if that is known. Not used for scoring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
}

/// The `replies:FILE` agent with its replies.
#[derive(Debug)]
pub struct Replies {
    replies: BTreeMap<(String, String, u32), String>,
}

impl Replies {
    /// Reads a file of replies.
    ///
    /// # Errors
    /// Kind `Usage` if the file cannot be read, has a broken line, or has two replies for the same unit and attempt.
    pub fn open(path: &Path) -> Result<Self> {
        let mut replies = BTreeMap::new();
        for (line, reply) in stored_replies(path)? {
            let StoredReply { paper, unit, attempt, text, .. } = reply;
            if replies.insert((paper, unit.clone(), attempt), text).is_some() {
                return Err(Error::usage(format!("two replies for `{unit}`, attempt {attempt}"))
                    .at(path, Some(line))
                    .hint("give each its own `attempt`, from 0"));
            }
        }
        Ok(Self { replies })
    }
}

/// Reads the lines of a file of replies, with their numbers.
///
/// # Errors
/// Kind `Usage` if the file cannot be read, is empty, or has a broken line.
pub fn stored_replies(path: &Path) -> Result<Vec<(usize, StoredReply)>> {
    const FORM: &str =
        "a line is like {\"paper\": \"kmeanspp\", \"unit\": \"kmeanspp/lloyd.py::KMeans.fit\", \"text\": \"...\"}";
    let text = std::fs::read(path).map_err(|error| {
        Error::usage(format!("failed to read the replies `{}`", path.display())).because(error).hint(FORM)
    })?;
    let mut replies = Vec::new();
    for line in json_lines(&text) {
        let reply = line.value.map_err(|error| {
            Error::usage("broken line in the replies").at(path, Some(line.number)).because(error).hint(FORM)
        })?;
        replies.push((line.number, reply));
    }
    if replies.is_empty() {
        return Err(Error::usage("the file has no replies").at(path, None).hint(FORM));
    }
    Ok(replies)
}

#[async_trait]
impl Agent for Replies {
    fn name(&self) -> &'static str {
        "replies"
    }

    fn needs_model(&self) -> bool {
        false
    }

    fn only(&self) -> Option<&'static str> {
        Some(MASKED)
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        let attempt = task.attempt;
        let Some(task) = task.part::<Replication>() else { return Replication::missing(self.name()) };
        let masked = match repo::python_files(context).await {
            Ok(code) => code,
            Err(fault) => return fault.into(),
        };
        let mut filled = FilledCode::new(masked, &task.functions);
        let mut faults = Vec::new();
        let mut files = BTreeMap::new();
        for (place, function) in task.functions.iter().enumerate() {
            let names = [Some(function.at.as_str()), region_name(&function.at)];
            let key = |unit: &str| (task.paper.id.clone(), unit.to_owned(), attempt);
            let Some(reply) = names.into_iter().flatten().find_map(|unit| self.replies.get(&key(unit))) else {
                return End::GaveUp.because(format!("no stored reply for `{}`, attempt {attempt}", function.at));
            };
            context.trajectory.push(&Event::Message { role: Role::Assistant, content: reply.clone(), call_id: None });
            match filled.put(&task.functions, place, reply) {
                Ok((file, bytes)) => {
                    files.insert(file, bytes);
                }
                Err(what) => {
                    context.count_format_error(&what);
                    faults.push(format!("`{}`: {what}", function.at));
                }
            }
        }
        let files: Vec<_> = files.into_iter().collect();
        if let Err(ended) = experiment::write_all(&files, context).await {
            return ended;
        }
        let ended = experiment::report(&task.checks(), context).await;
        if faults.is_empty() || ended.end.is_infrastructure() {
            return ended;
        }
        AttemptEnd { detail: Some(faults.join("; ")), ..ended }
    }
}
