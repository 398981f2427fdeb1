//! Reads the published folder of ResearchCodeBench, and reports all errors in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::code::{Module, TaggedRegion, tagged};
use crate::draft::require_id;
use crate::error::{Error, Result};
use crate::suite::PartialDate;

/// Name of the file with the unit tests.
pub const TEST: &str = "paper2code_test.py";

/// First word of the comment tags around snippets.
const WORD: &str = "paper2code";

/// Suffix of the names of files with reference solutions.
const REFERENCE: &str = "_ref.py";

/// Possible names of the file with the paper's text.
const TEXTS: [&str; 2] = ["paper2code_paper.tex", "paper2code_paper.md"];

/// A paper as published.
pub struct PublishedTask {
    /// The paper's id, which is the name of its folder.
    pub id: String,
    /// The paper's title.
    pub title: String,
    /// Address of the paper's text.
    pub url: String,
    /// Date on which the paper's text became public.
    pub published: Option<PartialDate>,
    /// When the code became public.
    pub first_commit: Option<PartialDate>,
    /// The paper's folder.
    pub folder: PathBuf,
    /// File with the paper's text.
    pub text: PathBuf,
    /// Paths of the files with reference solutions, relative to the folder.
    pub references: Vec<String>,
    /// Files for agents to read, because the descriptions of the code to restore mention them.
    pub context: Vec<String>,
    /// Files with comment tags, and the regions that the tags mark.
    pub annotated: Vec<(Module, Vec<TaggedRegion>)>,
}

/// An entry of `papers.yaml`.
#[derive(Deserialize)]
struct ListedPaper {
    id: String,
    title: String,
    #[serde(default)]
    arxiv_abs: String,
    arxiv_v1_date: Option<String>,
    first_commit_date: Option<String>,
    annotated_file_paths: PathList,
    #[serde(default)]
    context_file_paths: Option<PathList>,
}

/// One path or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum PathList {
    One(String),
    Several(Vec<String>),
}

impl PathList {
    fn paths(self) -> Vec<String> {
        let paths = match self {
            Self::One(path) => vec![path],
            Self::Several(paths) => paths,
        };
        paths.into_iter().map(|path| path.trim().to_owned()).collect()
    }
}

/// Reads all papers in a folder, which is a copy of the benchmark's repository or of its folder `pset`.
///
/// # Errors
/// Kind `Usage` if there is no `papers.yaml`; kind `Suite`, listing all errors found.
pub fn read(folder: &Path) -> Result<Vec<PublishedTask>> {
    let places = [folder.join("pset"), folder.to_owned()];
    let root = places.into_iter().find(|place| place.join("papers.yaml").is_file()).ok_or_else(|| {
        Error::usage(format!("no `papers.yaml` in `{}` or its `pset`", folder.display()))
            .hint("give a copy of the repository of ResearchCodeBench")
    })?;
    let list = root.join("papers.yaml");
    let text = std::fs::read_to_string(&list).map_err(|error| Error::unreadable(&list, error))?;
    let listed: Vec<ListedPaper> = serde_saphyr::from_str(&text).map_err(|error| {
        let line = error.location().map(|location| location.line() as usize);
        Error::suite(error.without_snippet().to_string())
            .at(&list, line)
            .hint("it is a list of papers with `id`, `title` and `annotated_file_paths`; another version may differ")
    })?;
    if listed.is_empty() {
        return Err(Error::suite("lists no paper").at(&list, None));
    }
    let (mut tasks, mut faults, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for paper in listed {
        let is_entry = |line: &str| {
            line.trim_start_matches(['-', ' '])
                .strip_prefix("id:")
                .is_some_and(|id| id.trim().trim_matches(['"', '\'']) == paper.id)
        };
        let line = text.lines().position(is_entry).map(|line| line + 1);
        if !seen.insert(paper.id.clone()) {
            faults.push(Error::suite(format!("paper `{}` is listed twice", paper.id)).at(&list, line));
            continue;
        }
        match task(&root, paper, (&list, line)) {
            Ok(task) => tasks.push(task),
            Err(found) => faults.extend(found),
        }
    }
    match Error::all(faults) {
        None => Ok(tasks),
        Some(error) => Err(error),
    }
}

/// Reads one paper. `place` is the file and line of its entry in `papers.yaml`.
fn task(root: &Path, paper: ListedPaper, place: (&Path, Option<usize>)) -> Result<PublishedTask, Vec<Error>> {
    let folder = root.join(&paper.id);
    let wrong = |what: String| Error::suite(format!("paper `{}`: {what}", paper.id)).at(place.0, place.1);
    require_id(&paper.id).map_err(|error| vec![wrong(error.message)])?;
    if !folder.is_dir() {
        return Err(vec![wrong("it has no folder".to_owned()).hint("the copy of the repository is incomplete")]);
    }
    let mut faults = Vec::new();
    let mut date = |name: &str, text: &Option<String>| {
        let parsed = text.as_deref().map(str::parse::<PartialDate>).transpose();
        parsed.unwrap_or_else(|what| {
            faults.push(wrong(format!("`{name}`: {what}")));
            None
        })
    };
    let published = date("arxiv_v1_date", &paper.arxiv_v1_date);
    let first_commit = date("first_commit_date", &paper.first_commit_date);
    let missing = |file: &str| {
        Error::suite("is missing").at(folder.join(file), None).hint("the copy of the repository is incomplete")
    };
    if !folder.join(TEST).is_file() {
        faults.push(missing(TEST));
    }
    let text = TEXTS.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    if text.is_none() {
        faults.push(missing(TEXTS[0]));
    }
    let context = paper.context_file_paths.map(PathList::paths).unwrap_or_default();
    let annotated = paper.annotated_file_paths.paths();
    if annotated.is_empty() {
        faults.push(wrong("`annotated_file_paths` is empty".to_owned()));
    }
    let is_inside =
        |file: &str| Path::new(file).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    for file in context.iter().chain(&annotated) {
        if !is_inside(file) {
            faults.push(wrong(format!("`{file}` is not a path in the paper's folder")));
        } else if !folder.join(file).is_file() {
            faults.push(missing(file));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut modules = Vec::new();
    for file in &annotated {
        match regions(&folder, file) {
            Ok(found) => modules.push(found),
            Err(found) => faults.extend(found),
        }
    }
    let (Some(text), true) = (text, faults.is_empty()) else { return Err(faults) };
    Ok(PublishedTask {
        references: references(&folder),
        id: paper.id,
        title: paper.title,
        url: paper.arxiv_abs,
        published,
        first_commit,
        folder,
        text,
        context,
        annotated: modules,
    })
}

/// Parses a file and the comment tags in it.
fn regions(folder: &Path, file: &str) -> Result<(Module, Vec<TaggedRegion>), Vec<Error>> {
    let whole = |mut error: Error| {
        let line = error.place.take().and_then(|(_, line)| line);
        error.at(folder.join(file), line)
    };
    let module = Module::read(folder, Path::new(file)).map_err(|error| vec![whole(error)])?;
    let mut found = tagged(&module).map_err(|error| {
        vec![whole(error).hint("close each tag with one of the same name, and a nested tag before the one around it")]
    })?;
    // The file's own editor comments, such as `# region loss`, are not snippets.
    found.retain(|region| region.word == WORD);
    if found.is_empty() {
        return Err(vec![
            Error::suite("has no `# <paper2code name=\"...\">`, although it is listed as annotated")
                .at(folder.join(file), None),
        ]);
    }
    let mut faults = Vec::new();
    for (place, inner) in found.iter().enumerate() {
        let Ok(region) = &inner.region else { continue };
        let around = found[..place].iter().find(|outer| {
            outer.name == inner.name && outer.region.as_ref().is_ok_and(|outer| outer.range.end >= region.range.end)
        });
        if let Some(outer) = around {
            let what = format!("`{}` is inside of another region of this name, from line {}", inner.name, outer.line);
            faults.push(
                Error::suite(what)
                    .at(folder.join(file), Some(inner.line))
                    .hint("regions of one name may follow each other, but not contain each other"),
            );
        }
    }
    if faults.is_empty() { Ok((module, found)) } else { Err(faults) }
}

/// Returns the names of the files with reference solutions in a folder, sorted.
fn references(folder: &Path) -> Vec<String> {
    let walk = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().flatten();
    let files = walk.filter(|entry| entry.file_type().is_file());
    let paths = files.filter_map(|entry| Some(entry.path().strip_prefix(folder).ok()?.to_str()?.to_owned()));
    paths.filter(|path| path.ends_with(REFERENCE)).collect()
}
