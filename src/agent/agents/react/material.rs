//! Retrieves the passages and code snippets that `react` shows to the model after the task.

use crate::agent::retrieval::{Code, CodeChoice, PaperChoice, Passage, RetrievalQuery, Retriever, passages};
use crate::agent::{AttemptEnd, Context, End, Replication, Task, prompts, repo};

/// Retrieves passages and snippets for all missing functions, without duplicates. Returns `None` if the settings
/// request nothing or nothing is found. An error ends the attempt.
pub async fn gather(
    retriever: &Retriever,
    task: &Task,
    context: &mut Context<'_>,
) -> Result<Option<String>, AttemptEnd> {
    let by_code = !matches!(retriever.code, CodeChoice::Agent | CodeChoice::None);
    if retriever.paper == PaperChoice::None && !by_code {
        return Ok(None);
    }
    let Some(task) = task.part::<Replication>() else { return Ok(None) };
    let code = repo::python_files(context).await?;
    let found = collect(retriever, task, &code).await.map_err(|what| End::ModelError.because(what))?;
    Ok(prompts::fixed::material(&found.0, &found.1))
}

type PassagesAndSnippets = (Vec<Passage>, Vec<(String, String)>);

async fn collect(retriever: &Retriever, task: &Replication, code: &Code) -> Result<PassagesAndSnippets, String> {
    let (mut text, mut snippets): PassagesAndSnippets = Default::default();
    if retriever.paper == PaperChoice::Full {
        text = passages(&task.text);
    }
    if retriever.code == CodeChoice::Full {
        let whole = |module: &crate::code::Module| String::from_utf8_lossy(module.source()).into_owned();
        snippets = code.modules.iter().map(|(path, module)| (path.display().to_string(), whole(module))).collect();
    }
    for function in &task.functions {
        let wanted = RetrievalQuery::new(function, code)?;
        for passage in retriever.passages(&task.text, &wanted).await? {
            if !text.contains(&passage) {
                text.push(passage);
            }
        }
        for snippet in retriever.snippets(code, &wanted, None, None).await? {
            if !snippets.iter().any(|(at, _)| *at == snippet.at) {
                snippets.push((snippet.at, snippet.text));
            }
        }
    }
    Ok((text, snippets))
}
