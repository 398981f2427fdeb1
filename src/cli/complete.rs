//! `autoexperiment complete`: names of papers, runs and agents for shell completions. The completion scripts call it
//! while the user types, so it is hidden from the help.

use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory};

use super::naming::stored_runs;
use super::shared::{SuiteOptions, print};
use crate::agent::{AGENTS, bundled_names};
use crate::error::Result;
use crate::suite::Suite;

/// Print the names that can follow the beginning of a command line, one per line
#[derive(clap::Args)]
pub struct Arguments {
    /// The command line up to the cursor.
    line: String,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let command = super::Arguments::command();
    let mut words: Vec<&str> = arguments.line.split_whitespace().collect();
    let partial = if arguments.line.ends_with(char::is_whitespace) { "" } else { words.pop().unwrap_or_default() };
    let Some((name, typed)) = argument_at(&command, words.get(1..).unwrap_or_default(), partial) else { return Ok(()) };
    let names = match name.as_str() {
        "PAPER" => papers(option(&words, "--suite")),
        "RUN" => runs(option(&words, "--runs")),
        "AGENT" => agents(),
        _ => return Ok(()),
    };
    // In a list with commas, complete only the last name.
    let open = typed.rfind(',').map_or(0, |comma| comma + 1);
    let kept = partial.len() - typed.len() + open;
    let matching = names.iter().filter(|name| name.starts_with(&typed[open..]));
    let lines: Vec<String> = matching.map(|name| format!("{}{name}\n", &partial[..kept])).collect();
    print(&lines.concat())
}

/// Finds the argument that the word at the cursor belongs to. Returns the name that the help uses for the argument's
/// value, and the part of the value typed so far.
fn argument_at<'a>(command: &Command, words: &[&str], partial: &'a str) -> Option<(String, &'a str)> {
    let (mut verb, mut rest) = (command, words);
    while let Some(below) = rest.first().and_then(|word| verb.find_subcommand(word)) {
        (verb, rest) = (below, &rest[1..]);
    }
    if std::ptr::eq(verb, command) {
        return None;
    }
    let mut pending: Option<&Arg> = None;
    let mut places = 0;
    for word in rest {
        if pending.take().is_some() {
            continue;
        }
        match named(verb, word) {
            Some((argument, None)) if argument.get_action().takes_values() => pending = Some(argument),
            Some(_) => {}
            None if word.starts_with('-') => {}
            None => places += 1,
        }
    }
    let (argument, typed) = match (pending, named(verb, partial)) {
        (Some(argument), _) => (argument, partial),
        (None, Some((argument, Some(value)))) => (argument, value),
        (None, _) if partial.starts_with('-') => return None,
        (None, _) => {
            let all: Vec<&Arg> = verb.get_positionals().collect();
            let last = all.last().filter(|last| last.get_num_args().is_some_and(|many| many.max_values() > 1));
            (*all.get(places).or(last)?, partial)
        }
    };
    let name = argument.get_value_names()?.first()?.to_string();
    Some((name, typed))
}

/// Finds the option that a word names, and the value after its `=`.
fn named<'a, 'word>(verb: &'a Command, word: &'word str) -> Option<(&'a Arg, Option<&'word str>)> {
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    let is_it = |argument: &&Arg| {
        let long = name.strip_prefix("--").is_some_and(|name| {
            argument.get_long() == Some(name) || argument.get_all_aliases().unwrap_or_default().contains(&name)
        });
        let mut letters = name.strip_prefix('-').unwrap_or_default().chars();
        let short = argument.get_short().is_some_and(|short| letters.next() == Some(short) && letters.next().is_none());
        long || short
    };
    verb.get_arguments().find(is_it).map(|argument| (argument, value))
}

/// Returns the value that the words of the command line give to an option.
fn option(words: &[&str], name: &str) -> Option<PathBuf> {
    let behind = |pair: &[&str]| (pair[0] == name).then(|| PathBuf::from(pair[1]));
    let joined = |word: &&str| word.strip_prefix(name)?.strip_prefix('=').map(PathBuf::from);
    words.windows(2).find_map(behind).or_else(|| words.iter().find_map(joined))
}

fn papers(suite: Option<PathBuf>) -> Vec<String> {
    let folder = suite.map_or_else(|| SuiteOptions::default().folder(), Ok);
    folder.and_then(|folder| Suite::open(&folder)?.ids()).unwrap_or_default()
}

fn runs(folder: Option<PathBuf>) -> Vec<String> {
    let stored = stored_runs(&folder.unwrap_or_else(|| Path::new("runs").to_owned()));
    let names = stored.iter().filter_map(|stored| stored.folder.file_name()?.to_str().map(str::to_owned));
    let latest = (!stored.is_empty()).then(|| "latest".to_owned());
    names.chain(latest).collect()
}

/// Returns the names of the agents, some with a colon after which their argument follows, and of the external agents
/// that come with the program.
fn agents() -> Vec<String> {
    let own = AGENTS.iter().map(|name| match *name {
        "mutant" | "scripted" | "replies" | "cli" | "python" => format!("{name}:"),
        name => name.to_owned(),
    });
    own.chain(bundled_names().into_iter().map(|name| format!("cli:{name}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(line: &str) -> Option<(String, String)> {
        let command = super::super::Arguments::command();
        let mut words: Vec<&str> = line.split(' ').collect();
        let partial = words.pop().unwrap();
        argument_at(&command, &words[1..], partial).map(|(name, typed)| (name, typed.to_owned()))
    }

    #[test]
    fn agents_that_need_an_argument_are_completed_with_a_colon() {
        let names = agents();
        for name in ["mutant", "scripted", "replies", "cli", "python"] {
            assert!(names.contains(&format!("{name}:")) && !names.contains(&name.to_owned()), "{names:?}");
        }
        assert!(names.contains(&"react".to_owned()));
    }

    #[test]
    fn the_words_before_the_cursor_determine_what_is_completed() {
        for (line, name, typed) in [
            ("autoexperiment run km", "PAPER", "km"),
            ("autoexperiment run -n 1 -p kmeanspp,u", "PAPER", "kmeanspp,u"),
            ("autoexperiment run kmeanspp u", "PAPER", "u"),
            ("autoexperiment run --papers=km", "PAPER", "km"),
            ("autoexperiment run -n 1..3 --agent g", "AGENT", "g"),
            ("autoexperiment report ", "RUN", ""),
            ("autoexperiment verify ", "PAPER", ""),
        ] {
            assert_eq!(ask(line), Some((name.to_owned(), typed.to_owned())), "{line}");
        }
        for line in ["autoexperiment ru", "autoexperiment run --ag", "autoexperiment nope x"] {
            assert_eq!(ask(line), None, "{line}");
        }
    }
}
