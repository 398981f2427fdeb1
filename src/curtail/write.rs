//! Writes the parameters that the search has found for curtailed (shortened) experiments to the manifest. The rest of
//! the manifest is kept, including comments.

use std::path::Path;

use toml_edit::{DocumentMut, InlineTable, Item, Table, Value};

use super::setting::Setting;
use crate::error::{Error, Result};
use crate::files::write_durably;
use crate::suite::CurtailedEvidence;

/// Replaces the parameters of the curtailed (shortened) version of these experiments, and the evidence of how well that
/// version predicts the verdicts of the full one.
///
/// # Errors
/// Kind `Suite` for a manifest that cannot be parsed or does not contain an experiment any more; `Machine` if the file
/// cannot be read or written.
pub fn write(manifest: &Path, found: &[(&str, &Setting, CurtailedEvidence)]) -> Result<()> {
    let text = std::fs::read_to_string(manifest).map_err(|error| Error::io("read", manifest, error))?;
    let text = rewritten(&text, found).map_err(|message| Error::suite(message).at(manifest, None))?;
    write_durably(manifest, text.as_bytes())
}

fn rewritten(text: &str, found: &[(&str, &Setting, CurtailedEvidence)]) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    for (id, setting, evidence) in found {
        let missing = || format!("experiment `{id}` no longer exists");
        let experiments = document.get_mut("experiment").and_then(Item::as_array_of_tables_mut).ok_or_else(missing)?;
        let is_it = |table: &&mut Table| table.get("id").and_then(Item::as_str) == Some(id);
        let experiment = experiments.iter_mut().find(is_it).ok_or_else(missing)?;
        let parameters = experiment.get_mut("parameters").and_then(Item::as_table_like_mut);
        let parameters = parameters.ok_or_else(|| format!("experiment `{id}` has no parameters"))?;
        let mut put = |key: &str, table: InlineTable| {
            let mut value = Value::InlineTable(table);
            if let Some(old) = parameters.get(key).and_then(Item::as_value) {
                *value.decor_mut() = old.decor().clone();
            }
            parameters.insert(key, Item::Value(value));
        };
        let mut curtailed = InlineTable::new();
        for (name, value) in *setting {
            curtailed.insert(
                name,
                plain(value).ok_or_else(|| format!("parameter `{name}` is not a string, a number or a boolean"))?,
            );
        }
        put("curtailed", curtailed);
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        put(
            "evidence",
            InlineTable::from_iter([
                ("command", Value::from(&evidence.command)),
                ("attempts", count(evidence.attempts).into()),
                ("passing", count(evidence.passing).into()),
                ("precision", evidence.precision.into()),
                ("recall", evidence.recall.into()),
                ("time", evidence.time.into()),
            ]),
        );
    }
    Ok(document.to_string())
}

fn plain(value: &toml::Value) -> Option<Value> {
    match value {
        toml::Value::String(text) => Some(text.as_str().into()),
        toml::Value::Integer(number) => Some((*number).into()),
        toml::Value::Float(number) => Some((*number).into()),
        toml::Value::Boolean(truth) => Some((*truth).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_curtailed_settings_and_their_evidence_keeps_the_rest_of_the_manifest() {
        let text = "\
# About the paper.
title = \"T\" # why

[[experiment]]
id = \"one\"
command = \"run {n} {k}\"
parameters.full = { n = 10, k = \"1,2\" }
parameters.curtailed = { n = 2, k = \"1\" } # the old one
result = { json_line = \"stdout\" }

[[experiment]]
id = \"two\"
command = \"run {n}\"
result = { json_line = \"stdout\" }
[experiment.parameters]
full = { n = 10 }   # the paper's
allowed = { n = [1,2] }
curtailed = { n = 1 }
";
        let evidence = CurtailedEvidence {
            command: "run".to_owned(),
            attempts: 60,
            passing: 7,
            precision: 1.0,
            recall: 0.9876,
            time: 0.05,
        };
        let setting = |text: &str| toml::from_str::<Setting>(text).unwrap();
        let (one, two) = (setting("n = 3\nk = '1,2'"), setting("n = 2"));
        let found = [("one", &one, evidence.clone()), ("two", &two, evidence)];
        let written = rewritten(text, &found).unwrap();
        insta::assert_snapshot!(written, @r#"
        # About the paper.
        title = "T" # why

        [[experiment]]
        id = "one"
        command = "run {n} {k}"
        parameters.full = { n = 10, k = "1,2" }
        parameters.curtailed = { k = "1,2", n = 3 } # the old one
        parameters.evidence = { command = "run", attempts = 60, passing = 7, precision = 1.0, recall = 0.9876, time = 0.05 }
        result = { json_line = "stdout" }

        [[experiment]]
        id = "two"
        command = "run {n}"
        result = { json_line = "stdout" }
        [experiment.parameters]
        full = { n = 10 }   # the paper's
        allowed = { n = [1,2] }
        curtailed = { n = 2 }
        evidence = { command = "run", attempts = 60, passing = 7, precision = 1.0, recall = 0.9876, time = 0.05 }
        "#);
        assert_eq!(rewritten(&written, &found).unwrap(), written);
        assert_eq!(
            rewritten(text, &[("three", &one, found[0].2.clone())]).unwrap_err(),
            "experiment `three` no longer exists"
        );
    }
}
