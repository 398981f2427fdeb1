//! `autoexperiment retrieve`: shows what retrieval finds for a function.

use std::fmt::Write as _;

use serde::Serialize;

use super::embedding::EmbeddingOptions;
use super::shared::{PlaceOptions, SuiteOptions, block_on, print, print_json, table};
use crate::agent::AgentSpec;
use crate::agent::retrieval::{Code, PaperChoice, RetrievalQuery, Retriever, passages, recall};
use crate::code::index_tree;
use crate::error::{Error, FailureKind, Result};
use crate::masked::described;
use crate::suite::LoadedPaper;

/// Values of k for which the tables show the recall of the first k passages.
const SHOWN: [usize; 4] = [1, 3, 5, 10];

/// Show what retrieval finds for masked functions, and its recall of the passages that the manifest names
///
/// For one function, shows the paper's passages and the repo's functions in the order in which a task would contain
/// them. Otherwise shows, for every function of the papers, the share of the manifest's passages among the first K.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  Show what a fixed agent would get for the fifth function of a paper:
    autoexperiment retrieve kmeanspp 4
  Do the same with embeddings, from a model in a folder:
    autoexperiment retrieve kmeanspp kmeanspp/lloyd.py::KMeans.fit --agent fixed:paper=embedding,code=embedding --embedding wordllama
  Measure recall over all functions of all papers:
    autoexperiment retrieve --agent fixed:paper=bm25")]
pub struct Arguments {
    /// Id of a paper [default: all papers].
    paper_id: Option<String>,
    /// Function: its number in `autoexperiment list PAPER`, or its selector [default: all functions].
    function: Option<String>,
    /// The agent whose retrieval is shown, with its settings, such as `fixed:paper=bm25,passages=5`.
    #[arg(long, value_name = "AGENT", default_value = "fixed")]
    agent: AgentSpec,
    #[command(flatten)]
    embedding: EmbeddingOptions,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    places: PlaceOptions,
}

/// Passages and functions found for one function.
#[derive(Serialize)]
struct FunctionRetrieval {
    paper: String,
    function: String,
    /// Headings of the passages that the manifest names for the function.
    oracle: Vec<String>,
    /// Headings of all passages, best first.
    ranking: Vec<String>,
    /// Recall of the first k passages of the ranking, as pairs of k (see [`SHOWN`]) and the recall.
    recall: Vec<(usize, f64)>,
    passages: Vec<ShownPassage>,
    snippets: Vec<ShownPassage>,
}

#[derive(Serialize)]
struct ShownPassage {
    at: String,
    text: String,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let suite = arguments.suite.open()?;
    arguments.agent.check_settings()?;
    let settings = arguments.agent.settings(&arguments.embedding.settings(&arguments.places)?).ok_or_else(|| {
        Error::usage("only `fixed` and `react` retrieve passages and code").hint("name one of them with `--agent`")
    })?;
    let cache = arguments.places.cache()?;
    let retriever = settings.retriever(Some(&cache))?;
    let ids = suite.select(arguments.paper_id.as_slice())?;
    let mut found = Vec::new();
    for id in &ids {
        let loaded = LoadedPaper::load(&suite, id)?;
        let chosen = match &arguments.function {
            Some(function) => vec![loaded.place(function)?],
            None => (0..loaded.paper.units.len()).collect(),
        };
        let hidden = loaded.paper.hidden_set();
        let files = index_tree(&loaded.repo_dir).into_iter().filter(|(path, _)| !hidden.is_match(path));
        let files = files.filter_map(|(path, module)| Some((path, module.ok()?)));
        let code = Code { modules: files.collect() };
        for function in chosen {
            found.push(block_on(retrieve(&loaded, function, code.clone(), &retriever))?);
        }
    }
    if arguments.json {
        return print_json(&found);
    }
    match (found.as_slice(), &arguments.function) {
        ([one], Some(_)) => print(&format_retrieval(one)),
        _ => print(&recalls(&ids, &found)),
    }
}

/// Searches the repo with this function masked, as an agent would see it.
async fn retrieve(
    loaded: &LoadedPaper,
    place: usize,
    mut code: Code,
    retriever: &Retriever,
) -> Result<FunctionRetrieval> {
    for file in loaded.masked(&[place])? {
        let module = crate::code::Module::parse(file.path.clone(), file.bytes)?;
        code.modules.insert(file.path, module);
    }
    let function = described(loaded, &[place], place);
    let wanted = RetrievalQuery::new(&function, &code).map_err(Error::suite)?;
    let failed = |what: String| Error::new(FailureKind::Model, what);
    let all = passages(&loaded.text);
    let order = match retriever.paper {
        PaperChoice::Bm25 | PaperChoice::Embedding => retriever
            .rank_passages(&all, &wanted)
            .await
            .map_err(failed)?
            .into_iter()
            .map(|at| all[at].clone())
            .collect(),
        _ => retriever.passages(&loaded.text, &wanted).await.map_err(failed)?,
    };
    let chosen = retriever.passages(&loaded.text, &wanted).await.map_err(failed)?;
    let snippets = retriever.snippets(&code, &wanted, None, None).await.map_err(failed)?;
    Ok(FunctionRetrieval {
        paper: loaded.paper.id.clone(),
        function: function.at,
        recall: SHOWN.iter().map(|&k| (k, recall(&function.passages, order.iter().take(k)))).collect(),
        ranking: order.into_iter().map(|passage| passage.heading).collect(),
        oracle: function.passages,
        passages: chosen.into_iter().map(|it| ShownPassage { at: it.heading, text: it.text }).collect(),
        snippets: snippets.into_iter().map(|it| ShownPassage { at: it.at, text: it.text }).collect(),
    })
}

fn format_retrieval(found: &FunctionRetrieval) -> String {
    let mut text =
        format!("{}  {}\n\npassages ('*' marks those that the manifest names)\n", found.paper, found.function);
    for (number, passage) in found.passages.iter().enumerate() {
        let mark = if found.oracle.contains(&passage.at) { '*' } else { ' ' };
        let _ =
            writeln!(text, "{:>3} {mark} {}  ({} characters)", number + 1, passage.at, passage.text.chars().count());
    }
    for heading in found.oracle.iter().filter(|heading| !found.passages.iter().any(|it| it.at == **heading)) {
        let rank = found.ranking.iter().position(|it| it == heading);
        let rank = rank.map_or_else(|| "not among them".to_owned(), |rank| format!("would be number {}", rank + 1));
        let _ = writeln!(text, "    * {heading}  ({rank})");
    }
    text.push_str("\nsnippets\n");
    for (number, snippet) in found.snippets.iter().enumerate() {
        let _ = writeln!(text, "{:>3}   {}  ({} lines)", number + 1, snippet.at, snippet.text.lines().count());
    }
    text
}

/// Formats the mean recall by paper.
fn recalls(papers: &[String], found: &[FunctionRetrieval]) -> String {
    let mean = |of: &[&FunctionRetrieval], at: usize| {
        format!("{:.2}", of.iter().map(|it| it.recall[at].1).sum::<f64>() / of.len().max(1) as f64)
    };
    let row = |name: &str, of: &[&FunctionRetrieval]| {
        let mut row = vec![name.to_owned(), of.len().to_string()];
        row.extend((0..SHOWN.len()).map(|at| mean(of, at)));
        row
    };
    let of = |paper: &String| found.iter().filter(|it| it.paper == *paper).collect::<Vec<_>>();
    let mut rows: Vec<Vec<String>> = papers.iter().map(|paper| row(paper, &of(paper))).collect();
    if papers.len() > 1 {
        rows.push(row("all", &found.iter().collect::<Vec<_>>()));
    }
    let header: Vec<String> = ["paper".to_owned(), "functions".to_owned()]
        .into_iter()
        .chain(SHOWN.iter().map(|k| format!("recall@{k}")))
        .collect();
    table(&header.iter().map(String::as_str).collect::<Vec<_>>(), &[1, 2, 3, 4, 5], rows)
}
