//! Finds the line of a fault that can be detected only after the whole manifest has been parsed.

use serde::Deserialize;
use toml::Spanned;

use crate::error::line_at;

/// A part of a manifest. The number is the part's index in the manifest's list of such parts.
#[derive(Debug, Clone, Copy)]
pub(super) enum ManifestPart {
    /// A function.
    Function(usize),
    /// A function's mutant that is marked as equivalent: the index of the function, and the index of the mutant in the
    /// function's list `equivalent`.
    Mutant(usize, usize),
    /// A region.
    Region(usize),
    /// An experiment.
    Experiment(usize),
    /// A glob of protected files.
    Protected(usize),
    /// A glob of hidden files.
    Hidden(usize),
    /// The key `build`. In a manifest without this key, the key `abi`.
    Build,
}

/// The parts of a manifest whose positions may be needed. Their values are not used.
#[derive(Deserialize)]
struct ManifestSpans {
    #[serde(default)]
    protected: Vec<Spanned<String>>,
    #[serde(default)]
    hidden: Vec<Spanned<String>>,
    build: Option<Spanned<String>>,
    abi: Option<Spanned<String>>,
    #[serde(default)]
    function: Vec<FunctionSpans>,
    #[serde(default)]
    region: Vec<RegionSpans>,
    #[serde(default)]
    experiment: Vec<ExperimentSpans>,
}

#[derive(Deserialize)]
struct FunctionSpans {
    at: Spanned<String>,
    #[serde(default)]
    equivalent: Vec<EquivalentSpans>,
}

#[derive(Deserialize)]
struct EquivalentSpans {
    mutant: Spanned<String>,
}

#[derive(Deserialize)]
struct RegionSpans {
    name: Spanned<String>,
}

#[derive(Deserialize)]
struct ExperimentSpans {
    id: Spanned<String>,
}

/// Returns the line (from 1) of a part of a manifest: the line of a function's or region's name, an experiment's id, a
/// mutant, or a glob.
pub(super) fn line_of(part: ManifestPart, text: &str) -> Option<usize> {
    let manifest: ManifestSpans = toml::from_str(text).ok()?;
    let span = match part {
        ManifestPart::Function(place) => manifest.function.get(place)?.at.span(),
        ManifestPart::Mutant(place, mutant) => manifest.function.get(place)?.equivalent.get(mutant)?.mutant.span(),
        ManifestPart::Region(place) => manifest.region.get(place)?.name.span(),
        ManifestPart::Experiment(place) => manifest.experiment.get(place)?.id.span(),
        ManifestPart::Protected(place) => manifest.protected.get(place)?.span(),
        ManifestPart::Hidden(place) => manifest.hidden.get(place)?.span(),
        ManifestPart::Build => manifest.build.or(manifest.abi)?.span(),
    };
    Some(line_at(text, span.start))
}
