//! Reads a manifest, and reports values in it that contradict each other.

use std::collections::BTreeSet;
use std::path::Path;

use super::paper::{Equivalent, Experiment, Paper, Parameters, Protocol, ResultRule, Unit, try_glob_set};
use super::spans::{ManifestPart, line_of};
use crate::error::{Error, Result};
use crate::files::from_toml;

impl Paper {
    /// Reads and validates a manifest.
    ///
    /// # Errors
    /// Kind `Suite`, with file and line, for broken TOML, unknown fields, or values that contradict each other; kind
    /// `Machine` if the manifest cannot be read.
    pub fn load(path: &Path, id: &str) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
        let mut paper: Self = from_toml(&text, path)?;
        id.clone_into(&mut paper.id);
        paper.units = paper.all_units();
        let faults = faults(&paper).into_iter();
        let faults = faults.map(|(part, message)| Error::suite(message).at(path, line_of(part, &text)));
        match Error::all(faults.collect()) {
            None => Ok(paper),
            Some(error) => Err(error),
        }
    }
}

/// A part of the manifest, and its fault.
type ManifestFault = (ManifestPart, String);

/// Lists all faults of a manifest that deserialisation does not detect, in the order of its parts.
fn faults(paper: &Paper) -> Vec<ManifestFault> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for (place, one) in paper.units.iter().enumerate() {
        if !seen.insert(&one.at) {
            faults.push((paper.part(place), format!("{} `{}` is listed twice", one.kind(), one.at)));
        }
        faults.extend(marks(paper, place, one));
    }
    for (place, region) in paper.regions.iter().enumerate() {
        if let Err(what) = region.validate() {
            faults.push((ManifestPart::Region(place), format!("region `{}`: {what}", region.label())));
        }
    }
    let mut seen = BTreeSet::new();
    for (place, one) in paper.experiments.iter().enumerate() {
        let (id, part) = (&one.id, ManifestPart::Experiment(place));
        if !is_manifest_id(id) {
            faults.push((part, format!("experiment id `{id}` must consist of letters, digits, `-`, `_` and `.`")));
        }
        if !seen.insert(id) {
            faults.push((part, format!("experiment `{id}` is listed twice")));
        }
        faults.extend(experiment(one).into_iter().map(|what| (part, format!("experiment `{id}`: {what}"))));
    }
    let faulty = unusable_globs("protected", &paper.protected).into_iter();
    faults.extend(faulty.map(|(place, what)| (ManifestPart::Protected(place), what)));
    let faulty = unusable_globs("hidden", &paper.hidden).into_iter();
    faults.extend(faulty.map(|(place, what)| (ManifestPart::Hidden(place), what)));
    faults.extend(build(paper).into_iter().map(|what| (ManifestPart::Build, what)));
    faults
}

/// Whether a text can be an id in a manifest: it consists of ASCII letters, digits, `-`, `_` and `.`. Other characters
/// could have a special meaning in a manifest, a path or a shell command.
pub(crate) fn is_manifest_id(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Lists the faults of a list of globs, each with the glob's index and as the text of a message. `key` is the list's key
/// in the manifest. Globs that are valid one by one may still be too large together.
fn unusable_globs(key: &str, globs: &[String]) -> Vec<(usize, String)> {
    let fault = |(place, glob): (usize, &String)| {
        globset::Glob::new(glob).err().map(|error| (place, format!("`{key}` glob `{glob}`: {error}")))
    };
    let mut faults: Vec<(usize, String)> = globs.iter().enumerate().filter_map(fault).collect();
    if faults.is_empty()
        && let Err(error) = try_glob_set(globs)
    {
        faults.push((0, format!("the globs in `{key}` cannot be used together: {error}")));
    }
    faults
}

/// Lists the faults in how the repo's compiled code is built, each as the text of a message.
fn build(paper: &Paper) -> Vec<String> {
    let mut faults = Vec::new();
    if paper.build.as_ref().is_some_and(|build| build.trim().is_empty()) {
        faults.push("`build` is empty: leave it out, or give the command".to_owned());
    }
    if paper.build.is_none() && !paper.products.is_empty() {
        faults.push("`products` without a `build` that makes them".to_owned());
    }
    for (name, globs) in [("products", &paper.products), ("compiled", &paper.compiled)] {
        faults.extend(unusable_globs(name, globs).into_iter().map(|(_, what)| what));
    }
    if let Some(abi) = &paper.abi
        && !abi
            .strip_prefix("cpython-")
            .is_some_and(|digits| digits.len() > 1 && digits.bytes().all(|byte| byte.is_ascii_digit()))
    {
        faults.push(format!("`abi` is `{abi}`, not an interpreter's tag as `cpython-312`"));
    }
    faults
}

/// Lists the mutants of a function or region that the manifest marks as equivalent without a reason, or twice.
fn marks(paper: &Paper, place: usize, unit: &Unit) -> Vec<ManifestFault> {
    let mut faults = Vec::new();
    let mut marked = BTreeSet::new();
    for (mark, Equivalent { mutant, reason }) in unit.equivalent.iter().enumerate() {
        let part = if unit.region.is_some() { paper.part(place) } else { ManifestPart::Mutant(place, mark) };
        let mut wrong = |what: &str| {
            faults.push((part, format!("{} `{}`: mutant `{mutant}` {what}", unit.kind(), unit.at)));
        };
        if reason.trim().is_empty() {
            wrong("is marked as equivalent without a reason");
        }
        if !marked.insert(mutant) {
            wrong("is marked twice");
        }
    }
    faults
}

/// Lists the faults of one experiment, each as a text to put after the experiment's id in a message.
fn experiment(one: &Experiment) -> Vec<String> {
    let mut faults = one.declared_tolerance().faults();
    if one.time_limit.is_some_and(|limit| !(limit > 0.0 && limit.is_finite())) {
        faults.push("time_limit must be more than 0 seconds".to_owned());
    }
    let [curtailed, full] = [Protocol::Curtailed, Protocol::Full].map(|protocol| one.command_line(protocol));
    let same = full.as_ref().err() == curtailed.as_ref().err();
    faults.extend(curtailed.as_ref().err().cloned());
    faults.extend(full.err().filter(|_| !same));
    faults.extend(parameters(&one.parameters).err());
    if let (Some(evidence), Ok(command)) = (&one.parameters.evidence, &curtailed)
        && evidence.command != *command
    {
        faults.push(
            "`parameters.evidence` is of another command: remove it, or measure it again with `autoexperiment curtail \
             --write`"
                .to_owned(),
        );
    }
    match &one.result {
        ResultRule::Regex(named) => {
            for (name, expression) in named {
                match regex::Regex::new(expression) {
                    Err(error) => faults.push(format!("expression of `{name}`: {error}")),
                    Ok(compiled) if compiled.captures_len() < 2 => {
                        faults.push(format!("expression of `{name}` has no group to read the value from"));
                    }
                    Ok(_) => {}
                }
            }
        }
        ResultRule::JsonFile(file) => {
            if Path::new(file).is_absolute() || file.split('/').any(|part| part == "..") {
                faults.push(format!("json_file `{file}` must be a path inside the repo"));
            }
        }
        ResultRule::JsonLine(_) => {}
    }
    faults
}

/// Checks the values that a manifest allows for an experiment's parameters: each parameter must exist and have at least
/// one value, and each value must be a number, text or truth value.
fn parameters(parameters: &Parameters) -> Result<(), String> {
    for (name, values) in &parameters.allowed {
        if !parameters.full.contains_key(name) {
            return Err(format!("`allowed` names `{name}`, which is not a parameter of the full protocol"));
        }
        if values.is_empty() {
            return Err(format!("`allowed` has no value for `{name}`"));
        }
        if values.iter().any(|value| value.is_table() || value.is_array()) {
            return Err(format!("`allowed` values of `{name}` must be strings, numbers or booleans"));
        }
    }
    Ok(())
}
