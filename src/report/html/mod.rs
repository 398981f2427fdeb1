//! The report as a page that opens in a browser: overview, samples, trajectories, comparisons.
//!
//! The input is a [`Material`], which other modules gather; the output is text. [`page`] makes one self-contained
//! document of this input, with the details of every sample packed inside or, if they are too large, in files next to
//! it. [`overview`] and [`index`] make the two halves of the document, which a server can send again while a run
//! continues.
//!
//! Text written by a model, an agent or a repo is untrusted. It reaches the page only through templates that escape it,
//! or as JSON that the page's script inserts as text nodes. The content security policy names the one script and the
//! one style sheet by their digests, so nothing that slips through can run.

mod board;
mod document;
mod headline;
mod index;
mod material;
mod measures;
mod overview;
mod pack;
mod template;
#[cfg(test)]
mod tests;
mod words;

pub use document::{live_page, page, policy};
pub use index::{Details, Index, SampleEntry, index, papers_text, samples};
pub use material::{
    AttemptDetails, Material, Origin, RunFacts, SampleDetails, SampleFacts, ShownRecord, UnrecordedAttempt,
};
pub use overview::overview;
