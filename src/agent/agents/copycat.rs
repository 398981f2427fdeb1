//! `copycat`: fills each masked function with the body of the most similar function of the repo. Similarity is judged
//! by the parts of the function that masking leaves: name, signature and docstring. The agent's pass rate shows how
//! often copying a similar function of the same repo is enough.

use std::path::PathBuf;

use async_trait::async_trait;

use crate::agent::retrieval::{Code, CodeChoice, PaperChoice, RetrievalQuery, Retriever};
use crate::agent::{Agent, AttemptEnd, Context, Event, Replication, Task, TaskFunction, experiment, repo};
use crate::code::{Module, last_part};
use crate::model::Role;
use crate::sample::MASKED;

/// The `copycat` agent.
#[derive(Debug)]
pub struct Copycat;

#[async_trait]
impl Agent for Copycat {
    fn name(&self) -> &'static str {
        "copycat"
    }

    fn needs_model(&self) -> bool {
        false
    }

    fn only(&self) -> Option<&'static str> {
        Some(MASKED)
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        let Some(task) = task.part::<Replication>() else { return Replication::missing(self.name()) };
        let mut code = match repo::python_files(context).await {
            Ok(code) => code,
            Err(fault) => return fault.into(),
        };
        let masked = code.clone();
        for function in &task.functions {
            let content = match copied(&masked, &mut code, function).await {
                Ok(from) => format!("`{}` is filled with the body of `{from}`", function.at),
                Err(what) => format!("`{}` stays masked: {what}", function.at),
            };
            context.trajectory.push(&Event::Message { role: Role::Assistant, content, call_id: None });
        }
        let files: Vec<(PathBuf, Vec<u8>)> = code
            .modules
            .iter()
            .filter(|(path, module)| masked.modules.get(*path).is_none_or(|it| it.source() != module.source()))
            .map(|(path, module)| (path.clone(), module.source().to_vec()))
            .collect();
        match experiment::write_all(&files, context).await {
            Ok(()) => experiment::report(&task.checks(), context).await,
            Err(ended) => ended,
        }
    }
}

/// Fills a function in `code`. The body is taken from the most similar function in `masked`, preferably one with the
/// same number of parameters. Returns the name of that function.
async fn copied(masked: &Code, code: &mut Code, function: &TaskFunction) -> Result<String, String> {
    if function.region.is_some() {
        return Err("it is a part of a function".to_owned());
    }
    let wanted = RetrievalQuery::new(function, masked)?;
    let all = Retriever {
        paper: PaperChoice::None,
        code: CodeChoice::Bm25,
        passages: 0,
        snippets: usize::MAX,
        embedder: None,
    };
    let target = masked.modules.get(&wanted.file).ok_or("its file is gone")?;
    let number = |module: &Module, index: usize| module.header(index).matches([',', '(']).count();
    let likest = all.snippets(masked, &wanted, None, None).await?;
    let likest: Vec<_> = likest.into_iter().filter(|it| !it.text.contains("raise NotImplementedError")).collect();
    let same = likest.iter().find(|it| {
        let other = masked.modules.get(&it.file);
        other.is_some_and(|other| number(other, it.function) == number(target, wanted.function))
    });
    let from = same.or(likest.first()).ok_or("no function is like it")?;
    let module = masked.modules.get(&from.file).ok_or("its file is gone")?;
    let body = module.functions()[from.function].body.clone();
    let body = String::from_utf8_lossy(&module.source()[body]).into_owned();
    let reply = format!("```python\n{}{body}\n```", module.header(from.function)).replacen(
        last_part(&module.functions()[from.function].name),
        last_part(&target.functions()[wanted.function].name),
        1,
    );
    let now = code.modules.get(&wanted.file).ok_or("its file is gone")?;
    let label = target.functions()[wanted.function].label();
    let index = now.find(&label).map_err(|error| error.to_string())?;
    let spliced = now.splice(index, &reply)?;
    let parsed = Module::parse(wanted.file.clone(), spliced.bytes).map_err(|error| error.to_string())?;
    code.modules.insert(wanted.file.clone(), parsed);
    Ok(from.at.clone())
}
