//! Parses experiments that a user requests: `NAME=COMMAND` on the command line; a file with one `NAME=COMMAND` per
//! line; or a file of `[[experiment]]` tables as in a manifest.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use crate::error::{Error, FailureKind, Result};
use crate::files::from_toml;
use crate::suite::{Parameters, ResultRule};
use crate::tolerance::{ToleranceRule, default_absolute};

/// A requested experiment. Same as an experiment in a manifest, but description and result rule are optional.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedExperiment {
    /// Short name of the experiment.
    pub id: String,
    /// Description of the measurement.
    #[serde(default)]
    pub description: Option<String>,
    /// Shell command, with `{name}` in place of the value of a parameter.
    pub command: String,
    /// Values of the parameters.
    #[serde(default)]
    pub parameters: Parameters,
    /// The rule for reading the result, if the user gave one.
    #[serde(default)]
    pub result: Option<ResultRule>,
    /// Tolerance for comparing results with gold; `None` for the default.
    #[serde(default)]
    pub tolerance: Option<ToleranceRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    #[serde(default)]
    experiment: Vec<RequestedExperiment>,
}

/// Pattern of a parameter with its values in a command: `{n=full:1000,curtailed:50}`, or `{n=50}` if the full and the
/// curtailed protocol use the same value. Python's `{n=}`, `{n=:.2f}` and `{n=!r}`, in an f-string, are not parameters.
static HOLE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\{([A-Za-z_][A-Za-z0-9_]*)=(\s*[^{}:!\s][^{}]*)\}").ok());

const FORM: &str = "write it as `NAME=COMMAND`, such as `table=python -m pkg table --n {n=full:1000,curtailed:50}`";

/// Parses `NAME=COMMAND`.
///
/// # Errors
/// Kind `Usage` if the name or the command is missing, or if a parameter has a full but no curtailed value, or two
/// different values.
pub fn parse(text: &str) -> Result<RequestedExperiment> {
    let (id, command) = text
        .split_once('=')
        .map(|(id, command)| (id.trim(), command.trim()))
        .filter(|(id, _)| is_name(id))
        .ok_or_else(|| Error::usage(format!("`{text}` does not begin with an experiment's name")).hint(FORM))?;
    if command.is_empty() {
        return Err(Error::usage(format!("experiment `{id}` has no command")).hint(FORM));
    }
    let mut parameters = Parameters::default();
    let mut plain = String::new();
    let mut rest = 0;
    for hole in HOLE.iter().flat_map(|hole| hole.captures_iter(command)) {
        let (Some(whole), Some(name), Some(values)) = (hole.get(0), hole.get(1), hole.get(2)) else { continue };
        if command[..whole.start()].ends_with('$') {
            // `${name=default}` is shell syntax, not a parameter.
            continue;
        }
        let (full, curtailed) = match values.as_str().strip_prefix("full:") {
            Some(both) => both.split_once(",curtailed:").ok_or_else(|| {
                Error::usage(format!(
                    "experiment `{id}`: `{}` lacks the value for the curtailed (shortened) experiment",
                    whole.as_str()
                ))
                .hint(format!("write it as `{{{}=full:1000,curtailed:50}}`", name.as_str()))
            })?,
            None => (values.as_str(), values.as_str()),
        };
        for (values, given) in [(&mut parameters.full, full), (&mut parameters.curtailed, curtailed)] {
            let earlier = values.insert(name.as_str().to_owned(), value(given));
            if earlier.is_some_and(|earlier| earlier != value(given)) {
                return Err(Error::usage(format!("experiment `{id}`: parameter `{}` has two values", name.as_str()))
                    .hint(format!("write its value once and `{{{}}}` elsewhere, or use two names", name.as_str())));
            }
        }
        plain.push_str(&command[rest..whole.start()]);
        let _ = write!(plain, "{{{}}}", name.as_str());
        rest = whole.end();
    }
    plain.push_str(&command[rest..]);
    Ok(RequestedExperiment {
        id: id.to_owned(),
        description: None,
        command: plain,
        parameters,
        result: None,
        tolerance: None,
    })
}

/// Reads a file of commands: TOML with `[[experiment]]` tables if its name ends in `.toml`, otherwise one
/// `NAME=COMMAND` per line, ignoring empty lines and lines that begin with `#`.
///
/// # Errors
/// Kind `Usage`, with file and line.
pub fn read(path: &Path) -> Result<Vec<RequestedExperiment>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::usage(format!("failed to read `{}`", path.display())).because(error))?;
    if path.extension().is_some_and(|extension| extension == "toml") {
        let tables: Tables = from_toml(&text, path).map_err(|error| {
            Error { kind: FailureKind::Usage, ..error }.hint(
                "an experiment is a table `[[experiment]]` with `id` and `command`, and if you like `description`, \
                 `parameters`, `result` and `tolerance`",
            )
        })?;
        return Ok(tables.experiment);
    }
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| parse(line).map_err(|error| error.at(path, Some(number))))
        .collect()
}

/// Checks that the list is not empty, that names are unique, and that parameters fit their commands.
///
/// # Errors
/// Kind `Usage`.
pub fn validate(wanted: &[RequestedExperiment]) -> Result<()> {
    if wanted.is_empty() {
        return Err(Error::usage("no experiments").hint("give them with `--command NAME=COMMAND` or `--commands FILE`"));
    }
    for (place, one) in wanted.iter().enumerate() {
        if !is_name(&one.id) {
            return Err(Error::usage(format!(
                "experiment id `{}` must consist of letters, digits, `-`, `_` and `.`",
                one.id
            )));
        }
        if wanted[..place].iter().any(|other| other.id == one.id) {
            return Err(Error::usage(format!("experiment `{}` is given twice", one.id)));
        }
        for protocol in [crate::suite::Protocol::Curtailed, crate::suite::Protocol::Full] {
            one.command_line(protocol).map_err(|what| Error::usage(format!("experiment `{}`: {what}", one.id)))?;
        }
    }
    Ok(())
}

/// Adds result rules to experiments, from the options `--regex NAME.KEY=EXPRESSION` and `--json-file NAME=FILE`.
///
/// # Errors
/// Kind `Usage` for an unknown experiment, or for a regular expression that is invalid or has no capture group.
pub fn add_rules(wanted: &mut [RequestedExperiment], expressions: &[String], files: &[String]) -> Result<()> {
    let ids: Vec<String> = wanted.iter().map(|one| format!("`{}`", one.id)).collect();
    let unknown = |text: &str| {
        Error::usage(format!("`{text}` names an unknown experiment"))
            .hint(format!("the experiments are {}", ids.join(", ")))
    };
    let mut named: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for text in expressions {
        let form = || {
            Error::usage(format!(
                "`{text}` lacks the name of a value in a result, or a regular expression that finds this value"
            ))
            .hint("write it as `NAME.KEY=EXPRESSION`, such as `table.loss=loss: ([-+.0-9e]+)`, with one group")
        };
        let (place, expression) = text.split_once('=').ok_or_else(form)?;
        let (id, key) = place.rsplit_once('.').ok_or_else(form)?;
        if Regex::new(expression).map_or(0, |regex| regex.captures_len()) < 2 {
            return Err(form());
        }
        named.entry(id.to_owned()).or_default().insert(key.to_owned(), expression.to_owned());
    }
    for (id, rule) in named {
        let one = wanted.iter_mut().find(|one| one.id == id).ok_or_else(|| unknown(&id))?;
        one.result = Some(ResultRule::Regex(rule));
    }
    for text in files {
        let (id, file) = text.split_once('=').ok_or_else(|| {
            Error::usage(format!("`{text}` does not name an experiment and its result file"))
                .hint("write it as `NAME=FILE`")
        })?;
        let one = wanted.iter_mut().find(|one| one.id == id).ok_or_else(|| unknown(text))?;
        one.result = Some(ResultRule::JsonFile(file.to_owned()));
    }
    Ok(())
}

impl RequestedExperiment {
    /// Returns the command with each parameter replaced by its value in this protocol (full or curtailed).
    pub fn command_line(&self, protocol: crate::suite::Protocol) -> Result<String, String> {
        self.experiment(ResultRule::JsonLine(crate::suite::Stdout::Stdout), String::new()).command_line(protocol)
    }

    /// Converts the request to an experiment of the manifest. The arguments take the place of the request's own
    /// `result` and `description`, which may be missing.
    #[must_use]
    pub fn experiment(&self, result: ResultRule, description: String) -> crate::suite::Experiment {
        crate::suite::Experiment {
            id: self.id.clone(),
            description,
            command: self.command.clone(),
            parameters: self.parameters.clone(),
            result,
            tolerance: self.tolerance.unwrap_or_default(),
            absolute_tolerance: default_absolute(),
            count_tolerance: 0.0,
            time_limit: None,
            hidden: false,
        }
    }
}

/// Whether a text is a valid name for an experiment or a paper.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.')
}

/// Converts a parameter's value to a number if that number is printed exactly as the user wrote it, and to a string
/// otherwise. So values such as `007` and `1e-3` are filled into the command unchanged.
fn value(text: &str) -> toml::Value {
    let number = text.parse::<i64>().map(toml::Value::Integer).or_else(|_| text.parse::<f64>().map(toml::Value::Float));
    number.ok().filter(|number| number.to_string() == text).unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Protocol;

    #[test]
    fn parameters_are_read_with_full_and_curtailed_values() {
        let one = parse("table = python -m pkg --n {n=full:1000,curtailed:50} --k {k=1,2,5} --lr {lr=0.10}").unwrap();
        assert_eq!(one.id, "table");
        assert_eq!(one.command, "python -m pkg --n {n} --k {k} --lr {lr}");
        assert_eq!(one.command_line(Protocol::Full).unwrap(), "python -m pkg --n 1000 --k 1,2,5 --lr 0.10");
        assert_eq!(one.command_line(Protocol::Curtailed).unwrap(), "python -m pkg --n 50 --k 1,2,5 --lr 0.10");
        assert_eq!(one.parameters.curtailed["n"], toml::Value::Integer(50));
    }

    #[test]
    fn commas_in_parameter_values_are_kept_and_braces_of_the_shell_are_not_parameters() {
        let one = parse("a=run ${X=1} {k=full:10,25,50,curtailed:5,10} $(ls {a,b})").unwrap();
        assert_eq!(one.command, "run ${X=1} {k} $(ls {a,b})");
        assert_eq!(one.command_line(Protocol::Full).unwrap(), "run ${X=1} 10,25,50 $(ls {a,b})");
    }

    #[test]
    fn expressions_in_pythons_f_strings_are_not_parameters() {
        let command = r#"python -c "print(f'{loss=} {loss=:.2f} {name=!r} {loss= }')""#;
        let one = parse(&format!("a={command}")).unwrap();
        assert_eq!((one.command.as_str(), one.parameters), (command, Parameters::default()));
    }

    #[test]
    fn a_parameter_that_is_written_twice_must_have_the_same_values() {
        let one = parse("a=run --n {n=10} --m {n=10} --k {n}").unwrap();
        assert_eq!(one.command_line(Protocol::Full).unwrap(), "run --n 10 --m 10 --k 10");
        for twice in ["{n=10} {n=20}", "{n=full:10,curtailed:2} {n=full:10,curtailed:3}"] {
            let error = parse(&format!("a=run {twice}")).unwrap_err();
            assert_eq!(error.message, "experiment `a`: parameter `n` has two values");
        }
    }

    #[test]
    fn a_command_without_a_name_is_refused() {
        for text in ["python -m pkg", "python -m pkg --n=3", "=python", "a b=python", "-x=python"] {
            assert!(parse(text).unwrap_err().message.contains("does not begin with an experiment's name"), "{text}");
        }
        assert!(parse("a=").unwrap_err().message.contains("has no command"));
        assert!(parse("a=run {n=full:3}").unwrap_err().message.contains("lacks the value for the curtailed"));
    }

    #[test]
    fn commands_are_read_from_a_text_file_with_one_per_line_and_from_toml_tables() {
        let folder = tempfile::tempdir().unwrap();
        let (lines, tables) = (folder.path().join("commands.txt"), folder.path().join("commands.toml"));
        std::fs::write(&lines, "# all\n\none=run 1\ntwo=run {n=2}\n").unwrap();
        let read_lines = read(&lines).unwrap();
        assert_eq!(read_lines.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["one", "two"]);
        std::fs::write(
            &tables,
            "[[experiment]]\nid = 'one'\ncommand = 'run {n}'\nparameters.full.n = 3\nparameters.curtailed.n = 1\n\
             result = { regex = { loss = 'loss (.*)' } }\n",
        )
        .unwrap();
        let read_tables = read(&tables).unwrap();
        assert_eq!(read_tables[0].command_line(Protocol::Full).unwrap(), "run 3");
        assert!(read_tables[0].result.is_some());
        std::fs::write(&lines, "one=run 1\nrun 2\n").unwrap();
        assert_eq!(read(&lines).unwrap_err().place.unwrap().1, Some(2));
        std::fs::write(&tables, "[[experiment]]\nid = 'one'\ncomand = 'run'\n").unwrap();
        assert_eq!(read(&tables).unwrap_err().place.unwrap().1, Some(3));
    }

    #[test]
    fn contradictory_commands_are_rejected() {
        let fault = |texts: &[&str]| {
            let wanted: Vec<RequestedExperiment> = texts.iter().map(|text| parse(text).unwrap()).collect();
            validate(&wanted).unwrap_err().message
        };
        assert_eq!(fault(&[]), "no experiments");
        assert_eq!(fault(&["a=run", "a=run 2"]), "experiment `a` is given twice");
    }

    #[test]
    fn result_rules_are_added_to_the_experiments_that_they_name() {
        let mut wanted = vec![parse("a.b=run").unwrap()];
        add_rules(&mut wanted, &["a.b.loss=loss: (.*)".to_owned()], &[]).unwrap();
        assert!(matches!(&wanted[0].result, Some(ResultRule::Regex(named)) if named["loss"] == "loss: (.*)"));
        add_rules(&mut wanted, &[], &["a.b=out/x.json".to_owned()]).unwrap();
        assert_eq!(wanted[0].result, Some(ResultRule::JsonFile("out/x.json".to_owned())));
        for text in ["c.loss=(.*)", "a.b.loss=.*", "loss"] {
            assert!(add_rules(&mut wanted, &[text.to_owned()], &[]).is_err(), "{text}");
        }
    }
}
