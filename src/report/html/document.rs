//! The whole document.

use std::sync::LazyLock;

use minijinja::context;
use minijinja::value::Serde;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use super::index::{Details, index, papers_text};
use super::material::Material;
use super::overview::overview;
use super::pack::{digest, packed, safe_json};
use super::template::render;
use crate::error::Result;

/// Most bytes of details that a document holds. With its script, its pictures and its index it stays below 3 MB.
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

/// A page, and the files that belong beside it.
pub struct Document {
    /// The page.
    pub html: String,
    /// Names and contents of files for the folder beside it; none where the page holds everything.
    pub beside: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Chunk {
    name: String,
    packed: String,
}

/// The page of these runs. With `details` it is whole: they are packed into it; where that would make it too large,
/// the trajectories, and if need be all of them, go into files for a folder beside it, whose name, as it stands in a URL, is `beside`. Without, it asks the server that it
/// came from, and `beside` is the stamp by which it tells whether anything has changed.
///
/// # Errors
/// Kind `Internal`, should a template or serialisation fail.
pub fn page(material: &Material, details: Option<&Details<'_>>, beside: &str) -> Result<Document> {
    let (mut chunks, mut trajectories) = (Vec::new(), Vec::new());
    if let Some(details) = details {
        for place in 0..material.papers.len() {
            chunks.push(Chunk { name: format!("p{place}"), packed: packed(&papers_text(material, place))? });
        }
        let sample = |place: usize| -> Result<[Chunk; 2]> {
            let mut sample = details.of(place);
            let events: Vec<_> = sample.attempts.iter_mut().map(|one| std::mem::take(&mut one.events)).collect();
            let events = json!({ "id": sample.id, "events": events });
            Ok([
                Chunk { name: format!("s{place}"), packed: packed(&sample)? },
                Chunk { name: format!("t{place}"), packed: packed(&events)? },
            ])
        };
        let made: Vec<_> = (0..details.samples()).into_par_iter().with_max_len(1).map(sample).collect::<Result<_>>()?;
        for [sample, events] in made {
            chunks.push(sample);
            trajectories.push(events);
        }
    }
    let mut files = Vec::new();
    // Trajectories are nearly all of it and go first.
    for part in [trajectories, std::mem::take(&mut chunks)].into_iter().rev() {
        let taken = chunks.iter().chain(&part).map(|chunk: &Chunk| chunk.packed.len()).sum::<usize>();
        if taken <= MOST_INSIDE { chunks.extend(part) } else { files.extend(part) }
    }
    let inside = files.is_empty();
    let mut index = index(material);
    if details.is_none() {
        index["live"] = beside.into();
    } else if !inside {
        index["beside"] = beside.into();
    }
    let html = render(
        "page.html",
        context! {
            title => material.title.clone(),
            policy => policy(details.is_none(), !inside),
            style => STYLE,
            script => SCRIPT,
            overview => overview(material)?,
            index => safe_json(&index)?,
            chunks => Serde(chunks),
        },
    )?;
    let file = |chunk: Chunk| {
        let call = format!("autoexperimentChunk(\"{}\",\"{}\");\n", chunk.name, chunk.packed);
        (format!("{}.js", chunk.name), call)
    };
    Ok(Document { html, beside: files.into_iter().map(file).collect() })
}

/// The content security policy: this script and this style sheet, no others; no network but, for a page that asks its
/// server, that one. `beside` lets the script load the files beside the page.
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
