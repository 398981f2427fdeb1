//! Retrieval of passages of the paper and snippets of the repo, for the prompt about a masked function.
//!
//! The query is the text that masking leaves of the function (its name, its signature, its docstring) and the
//! manifest's description. Snippets come from the files in the agent's sandbox, so that no masked body can be
//! retrieved.

mod ast;
pub mod bm25;
mod passage;
mod snippet;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskFunction;
use crate::model::embedding::{Embedder, similarity};
use bm25::{Bm25, ranked};

pub use passage::{Passage, passages};
pub use snippet::{Code, Snippet};

/// Text of the paper in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum PaperChoice {
    /// None of the text
    None,
    /// The whole text
    Full,
    /// The passages that BM25 ranks first
    Bm25,
    /// The passages with the most similar embeddings
    Embedding,
    /// The passages that the manifest names
    Oracle,
}

/// Code of the repo in a prompt, in addition to the function's own file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum CodeChoice {
    /// None: the agent explores the repo itself
    Agent,
    /// None
    None,
    /// All files
    Full,
    /// The functions that BM25 ranks first
    Bm25,
    /// Callers, their other callees, methods of the same class and functions of the same file
    Ast,
    /// The functions with the most similar embeddings
    Embedding,
}

/// Retrieval settings, with the embedding model.
#[derive(Clone)]
pub struct Retriever {
    /// Which text of the paper to retrieve.
    pub paper: PaperChoice,
    /// Which code of the repo to retrieve.
    pub code: CodeChoice,
    /// Maximum number of passages retrieved.
    pub passages: usize,
    /// Maximum number of snippets retrieved.
    pub snippets: usize,
    /// The embedding model, if any.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// A masked function and the search query for it.
#[derive(Debug, Clone)]
pub struct RetrievalQuery {
    /// The function's file.
    pub file: PathBuf,
    /// The function's index in the file's module.
    pub function: usize,
    /// The search query.
    pub query: String,
    /// Headings of the paper's sections that the manifest names for the function.
    pub oracle: Vec<String>,
}

impl RetrievalQuery {
    /// Finds a task's function in the code.
    ///
    /// # Errors
    /// An error message if the file or the function is missing.
    pub fn new(function: &TaskFunction, code: &Code) -> Result<Self, String> {
        let selector = function.selector()?;
        let module = code
            .modules
            .get(&selector.file)
            .ok_or_else(|| format!("`{}` is missing or is not valid Python", selector.file.display()))?;
        let index = module.find(&selector.name).map_err(|error| error.to_string())?;
        let query = format!(
            "{}\n{}\n{}\n{}",
            selector.name.replace('.', " "),
            module.header(index),
            module.docstring(index).unwrap_or_default(),
            function.description
        );
        Ok(Self { file: selector.file, function: index, query, oracle: function.passages.clone() })
    }
}

impl Retriever {
    /// Returns the chosen passages, best first. With [`PaperChoice::Full`] and [`PaperChoice::Oracle`] they are in the
    /// paper's order.
    ///
    /// # Errors
    /// The errors of the embedding model.
    pub async fn passages(&self, text: &str, wanted: &RetrievalQuery) -> Result<Vec<Passage>, String> {
        let all = passages(text);
        Ok(match self.paper {
            PaperChoice::None => Vec::new(),
            PaperChoice::Full => all,
            PaperChoice::Oracle => all.into_iter().filter(|it| wanted.oracle.contains(&it.heading)).collect(),
            PaperChoice::Bm25 | PaperChoice::Embedding => {
                let order = self.rank_passages(&all, wanted).await?;
                order.into_iter().take(self.passages).map(|place| all[place].clone()).collect()
            }
        })
    }

    /// Returns the indices of all passages, the best match first.
    ///
    /// # Errors
    /// The errors of the embedding model.
    pub async fn rank_passages(&self, all: &[Passage], wanted: &RetrievalQuery) -> Result<Vec<usize>, String> {
        let shown: Vec<String> = all.iter().map(Passage::heading_and_text).collect();
        Ok(ranked(&self.scores(&shown, &wanted.query, self.paper == PaperChoice::Embedding).await?))
    }

    /// Returns the chosen snippets, best first. If `files` is given, searches only these files and the function's own
    /// file. Omits the function itself and the file `shown`, which is in the prompt anyway.
    ///
    /// # Errors
    /// The errors of the embedding model.
    pub async fn snippets(
        &self,
        code: &Code,
        wanted: &RetrievalQuery,
        files: Option<&[PathBuf]>,
        shown: Option<&Path>,
    ) -> Result<Vec<Snippet>, String> {
        let all: Vec<Snippet> = code.snippets();
        let own = |it: &Snippet| it.file == wanted.file && it.function == wanted.function;
        let eligible = |it: &Snippet| {
            !own(it)
                && shown.is_none_or(|shown| it.file != shown)
                && files.is_none_or(|files| files.contains(&it.file) || it.file == wanted.file)
        };
        let scores = match self.code {
            CodeChoice::Agent | CodeChoice::None | CodeChoice::Full => return Ok(Vec::new()),
            CodeChoice::Ast => {
                let near = ast::nearness(code, &all, &wanted.file, wanted.function);
                let texts: Vec<String> = all.iter().map(|it| it.text.clone()).collect();
                let alike = self.scores(&texts, &wanted.query, false).await?;
                // Among functions whose relation to the masked function is equally close, those that share more words
                // with the query come first. This adds at most 0.5 to a score, so it cannot outweigh a closer relation,
                // which adds at least 1.
                let most = alike.iter().copied().fold(1.0, f64::max);
                near.iter()
                    .zip(&alike)
                    .map(|(&near, alike)| if near > 0.0 { near + alike / (most * 2.0) } else { 0.0 })
                    .collect()
            }
            CodeChoice::Bm25 | CodeChoice::Embedding => {
                let texts: Vec<String> = all.iter().map(|it| format!("{}\n{}", it.at, it.text)).collect();
                self.scores(&texts, &wanted.query, self.code == CodeChoice::Embedding).await?
            }
        };
        let chosen = ranked(&scores).into_iter().filter(|&place| scores[place] > 0.0 && eligible(&all[place]));
        Ok(chosen.take(self.snippets).map(|place| all[place].clone()).collect())
    }

    async fn scores(&self, texts: &[String], query: &str, embedding: bool) -> Result<Vec<f64>, String> {
        let Some(embedder) = self.embedder.as_ref().filter(|_| embedding) else {
            return Ok(Bm25::new(texts.iter().map(String::as_str)).scores(query));
        };
        let vectors = embedder.embed(texts).await?;
        let query = embedder.embed(&[query.to_owned()]).await?;
        let query = query.first().ok_or("the embedding model gave no vector for the query")?;
        Ok(vectors.iter().map(|vector| similarity(vector, query)).collect())
    }
}

/// Returns the share of the headings in `oracle` under which a passage was found; 1 if `oracle` is empty.
#[must_use]
pub fn recall<'a>(oracle: &[String], found: impl IntoIterator<Item = &'a Passage>) -> f64 {
    let wanted: BTreeSet<&str> = oracle.iter().map(String::as_str).collect();
    let found: BTreeSet<&str> = found.into_iter().map(|passage| passage.heading.as_str()).collect();
    if wanted.is_empty() { 1.0 } else { wanted.intersection(&found).count() as f64 / wanted.len() as f64 }
}
