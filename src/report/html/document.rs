//! Assembles the whole page from its template, style, scripts and data.

use std::sync::{LazyLock, Mutex, PoisonError};

use minijinja::context;
use minijinja::value::Serde;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use super::index::{Details, Index, index, papers_text};
use super::material::Material;
use super::overview::overview;
use super::pack::{digest, packed, safe_json};
use super::template::render;
use crate::error::Result;
use crate::files::PartsDigest;

/// Maximum bytes of details inside a page. With script, charts and index, the page then stays below 3 MB.
const MOST_INSIDE: usize = 2_300_000;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = concat!(
    "'use strict';\n(() => {\n",
    include_str!("script/base.js"),
    include_str!("script/tables.js"),
    include_str!("script/code.js"),
    include_str!("script/trajectory.js"),
    include_str!("script/verdict.js"),
    include_str!("script/sample.js"),
    include_str!("script/samples.js"),
    include_str!("script/compare.js"),
    include_str!("script/main.js"),
    "})();\n",
);

/// Callback that receives the name and contents of a file for the folder next to a page.
pub type WriteFileBeside<'a> = dyn Fn(&str, &str) -> Result<()> + Sync + 'a;

/// A part of the page's details, such as a sample's trajectories, with the name by which the page's script requests it.
#[derive(Debug, Serialize)]
struct Chunk {
    name: String,
    packed: String,
}

/// Data of a chunk, with the key of the page that it belongs to.
#[derive(Serialize)]
struct ChunkData<'a, T> {
    page: &'a str,
    #[serde(flatten)]
    data: T,
}

impl Chunk {
    /// Packs data for the page with this key.
    fn new(name: String, page: &str, data: &impl Serialize) -> Result<Self> {
        Ok(Self { name, packed: packed(&ChunkData { page, data })? })
    }
}

/// Chunks of details. They stay inside the page as long as all of them fit; otherwise, all are written to files next to
/// the page.
#[derive(Default)]
struct PageChunks {
    kept: Vec<Chunk>,
    bytes: usize,
    is_beside: bool,
}

impl PageChunks {
    /// Adds a chunk. Once the total exceeds `most` bytes, all chunks are written next to the page.
    fn add(&mut self, chunk: Chunk, most: usize, beside: &WriteFileBeside<'_>) -> Result<()> {
        self.bytes += chunk.packed.len();
        self.kept.push(chunk);
        if self.is_beside || self.bytes > most { self.put_beside(beside) } else { Ok(()) }
    }

    /// Writes all chunks in `kept` to files next to the page. Chunks that are added later are written to files, too.
    fn put_beside(&mut self, beside: &WriteFileBeside<'_>) -> Result<()> {
        self.is_beside = true;
        for Chunk { name, packed } in self.kept.drain(..) {
            beside(&format!("{name}.js"), &format!("autoexperimentChunk(\"{name}\",\"{packed}\");\n"))?;
        }
        Ok(())
    }
}

/// Builds the whole page of these runs, with the details of all samples packed into it. If the page would become too
/// large, passes the trajectories and, if needed, all details to `beside`, which writes them to the folder with the
/// URL-encoded name `folder`. Only data that fit into the page are held in memory.
///
/// # Errors
/// Kind `Internal` if a template or serialisation fails, and the errors of `beside`.
pub fn page(material: &Material, details: &Details<'_>, folder: &str, beside: &WriteFileBeside<'_>) -> Result<String> {
    let mut index = index(material);
    // Chunks refer to agents and attempts by position, so chunks of one page must never be shown on another.
    let mut key = PartsDigest::default();
    key.add(safe_json(&index)?);
    let key = key.finish();
    let mut verdicts = PageChunks::default();
    for place in 0..material.papers.len() {
        let chunk = Chunk::new(format!("p{place}"), &key, &papers_text(material, place))?;
        verdicts.add(chunk, MOST_INSIDE, beside)?;
    }
    // Trajectories make up nearly all of the size, so they are moved out of the page first.
    let both = Mutex::new((verdicts, PageChunks::default()));
    (0..details.samples()).into_par_iter().with_max_len(1).try_for_each(|place| {
        let mut sample = details.sample(place);
        let events: Vec<_> = sample.attempts.iter_mut().map(|one| std::mem::take(&mut one.events)).collect();
        let events = json!({ "id": sample.id, "events": events });
        let verdict = Chunk::new(format!("s{place}"), &key, &sample)?;
        let events = Chunk::new(format!("t{place}"), &key, &events)?;
        let (verdicts, trajectories) = &mut *both.lock().unwrap_or_else(PoisonError::into_inner);
        verdicts.add(verdict, MOST_INSIDE, beside)?;
        let room = if verdicts.is_beside { 0 } else { MOST_INSIDE.saturating_sub(verdicts.bytes) };
        trajectories.add(events, room, beside)
    })?;
    let (mut verdicts, mut trajectories) = both.into_inner().unwrap_or_else(PoisonError::into_inner);
    if verdicts.is_beside || verdicts.bytes + trajectories.bytes > MOST_INSIDE {
        trajectories.put_beside(beside)?;
    }
    let is_whole = !verdicts.is_beside && !trajectories.is_beside;
    verdicts.kept.append(&mut trajectories.kept);
    verdicts.kept.sort_by(|a, b| a.name.cmp(&b.name));
    index.key = Some(key);
    index.beside = (!is_whole).then(|| folder.to_owned());
    document(material, &overview(material)?, &index, &verdicts.kept)
}

/// Builds a page that fetches details from the server it came from.
///
/// # Errors
/// Kind `Internal` if a template or serialisation fails.
pub fn live_page(material: &Material, overview: &str, index: &Index) -> Result<String> {
    document(material, overview, index, &[])
}

fn document(material: &Material, overview: &str, index: &Index, chunks: &[Chunk]) -> Result<String> {
    render(
        "page.html",
        context! {
            title => material.title.clone(),
            policy => policy(index.live.is_some(), index.beside.is_some()),
            style => STYLE,
            script => SCRIPT,
            overview => overview,
            index => safe_json(index)?,
            chunks => Serde(chunks),
        },
    )
}

/// Returns the page's content security policy. It permits only the page's own script and style sheet, and no network
/// except, with `live`, the page's own server. `beside` lets the script load the files next to the page.
#[must_use]
pub fn policy(live: bool, beside: bool) -> String {
    static DIGESTS: LazyLock<[String; 2]> = LazyLock::new(|| [digest(SCRIPT), digest(STYLE)]);
    let [script, style] = &*DIGESTS;
    let trusted = if beside { " 'strict-dynamic'" } else { "" };
    let connect = if live { "'self'" } else { "'none'" };
    format!(
        "default-src 'none'; script-src {script}{trusted}; style-src {style}; img-src data:; connect-src {connect}; \
         base-uri 'none'; form-action 'none'"
    )
}
