//! Locates the functions of the published AutoExperiment data in the papers' code, by name, class and content.
//! Published line numbers are the weakest evidence.
//!
//! If only one function in the file has the published name, it is chosen, whatever the line numbers. Otherwise the
//! candidates are compared with what was published about the function: its class; its source; the words in its
//! description and its passage of the paper, except words that occur in all candidates; and, if words do not decide,
//! line numbers that fit a single candidate. If words and line numbers contradict each other, no candidate is chosen.
//!
//! In one case, line numbers are stronger evidence, and decide before source and words: if several functions with the
//! same name and file were published, and the lines of each fit a different function of that name. Outdated line
//! numbers would hardly do so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::published::{PublishedFunction, PublishedPaper};
use super::{Decisions, ImportRemark};
use crate::code::{CodeTokens, Function, Identifiers, Module, Selector, containment, last_part};
use crate::error::{Error, Result};

/// Share of the tokens of a published source that a candidate must contain to count as the same function.
const SAME_SOURCE: f64 = 0.9;

/// A function of the published data, located in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFunction {
    /// Id of the function in the published `functions.jsonl` (`func_id`), usually a number.
    pub number: String,
    /// Selector of the function, such as `pkg/file.py::Class.method`.
    pub selector: String,
}

/// Locates all functions of a paper in its repo.
///
/// # Errors
/// Kind `Suite` for functions that are ambiguous or missing, unless such functions are to be left out; the error lists
/// all of them with their candidates. Kind `Suite` also for a file that cannot be read or parsed.
pub fn find(
    repo: &Path,
    paper: &PublishedPaper,
    decisions: &Decisions,
    findings: &mut Vec<ImportRemark>,
) -> Result<Vec<FoundFunction>> {
    let mut modules: BTreeMap<String, Module> = BTreeMap::new();
    let mut found: Vec<FoundFunction> = Vec::new();
    let mut refused = Vec::new();
    let together = by_lines_together(repo, paper, &mut modules)?;
    for function in &paper.functions {
        let about = format!("function {}", function.number);
        let decided = decisions.at.get(&(paper.id.clone(), function.number.clone()));
        let outcome = match decided {
            Some(selector) => decided_place(repo, selector, &mut modules).map(Ok)?,
            None => {
                let by_lines = together.get(&function.number).copied();
                place(repo, function, by_lines, &mut modules, &about, findings)?
            }
        };
        let selector = match outcome {
            Ok(selector) => selector,
            Err(why) if decisions.leave_out => {
                findings.push(ImportRemark::left_out(about, why));
                continue;
            }
            Err(why) => {
                refused
                    .push(format!("function {} (`{}` in `{}`): {why}", function.number, function.name, function.file));
                continue;
            }
        };
        if let Some(twin) = found.iter().find(|other| other.selector == selector) {
            let why = format!("it is `{selector}`, which is function {} already", twin.number);
            if decisions.leave_out {
                findings.push(ImportRemark::left_out(about, why));
            } else {
                refused.push(format!("function {}: {why}", function.number));
            }
            continue;
        }
        found.push(FoundFunction { number: function.number.clone(), selector });
    }
    if refused.is_empty() {
        return Ok(found);
    }
    Err(Error::suite(format!("paper `{}` has ambiguous functions:\n{}", paper.id, refused.join("\n"))).hint(format!(
        "choose each function with `--at {}:NUMBER=FILE::NAME`, or leave these functions out with `--leave-out`",
        paper.id
    )))
}

/// Resolves the selector with which the user located a function (option `--at`). The function must exist.
fn decided_place(repo: &Path, selector: &str, modules: &mut BTreeMap<String, Module>) -> Result<String> {
    let parsed: Selector = selector.parse()?;
    let module = module(repo, &parsed.file.to_string_lossy(), modules)?;
    let index = module.find(&parsed.name)?;
    Ok(module.selector(index).to_string())
}

fn module<'a>(repo: &Path, file: &str, modules: &'a mut BTreeMap<String, Module>) -> Result<&'a Module> {
    if !modules.contains_key(file) {
        modules.insert(file.to_owned(), Module::read(repo, Path::new(file))?);
    }
    modules.get(file).ok_or_else(|| Error::internal(format!("the parsed module of `{file}` is missing")))
}

/// Returns the functions whose published line numbers can be trusted, as a map from the function's published id to its
/// index in its module. Line numbers are trusted if several functions with the same name and file were published, and
/// if the lines of each fit a different function of that name. Lines fit a function if they overlap no other function
/// of that name and end where the function ends.
fn by_lines_together(
    repo: &Path,
    paper: &PublishedPaper,
    modules: &mut BTreeMap<String, Module>,
) -> Result<BTreeMap<String, usize>> {
    let mut groups: BTreeMap<(&str, &str), Vec<&PublishedFunction>> = BTreeMap::new();
    for function in &paper.functions {
        groups.entry((&function.file, last_part(&function.name))).or_default().push(function);
    }
    let mut trusted = BTreeMap::new();
    for ((file, bare), published) in groups {
        if published.len() < 2 || !repo.join(file).is_file() {
            continue;
        }
        let module = module(repo, file, modules)?;
        let named = indices(module, |it| last_part(&it.name) == bare);
        let fitting = |function: &PublishedFunction| -> Option<usize> {
            let [header, _, end] = function.lines?;
            let overlaps = |it: &Function| it.first_line <= end && header <= it.last_line;
            let own: Vec<usize> = named.iter().copied().filter(|&at| overlaps(&module.functions()[at])).collect();
            let [one] = own.as_slice() else { return None };
            ends_there(&module.functions()[*one], end).then_some(*one)
        };
        let places: Vec<Option<usize>> = published.iter().map(|function| fitting(function)).collect();
        let different: BTreeSet<usize> = places.iter().flatten().copied().collect();
        if different.len() == published.len() {
            trusted.extend(published.iter().zip(places).filter_map(|(one, at)| Some((one.number.clone(), at?))));
        }
    }
    Ok(trusted)
}

/// Returns the selector (such as `pkg/file.py::Class.method`) of a published function, or why it cannot be located.
fn place(
    repo: &Path,
    function: &PublishedFunction,
    by_lines: Option<usize>,
    modules: &mut BTreeMap<String, Module>,
    about: &str,
    findings: &mut Vec<ImportRemark>,
) -> Result<Result<String, String>> {
    if !repo.join(&function.file).is_file() {
        return Ok(Err(format!("the code has no file `{}`", function.file)));
    }
    let module = module(repo, &function.file, modules)?;
    let bare = last_part(&function.name);
    let wanted = function.class.as_ref().map_or_else(|| function.name.clone(), |class| format!("{class}.{bare}"));
    let named: Vec<usize> = indices(module, |it| last_part(&it.name) == bare);
    if named.is_empty() {
        let labels: Vec<String> = module.functions().iter().map(Function::label).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let near = similar::get_close_matches(bare, &labels, 3, 0.6);
        let near = if near.is_empty() { String::new() } else { format!("; near names: {}", near.join(", ")) };
        return Ok(Err(format!("the file has no function of that name{near}")));
    }
    // Consider only functions in the class that was published, if that class has functions of this name.
    let of_class: Vec<usize> =
        named.iter().copied().filter(|&at| ends_with(&module.functions()[at].name, &wanted)).collect();
    let candidates = if of_class.is_empty() || !wanted.contains('.') { named } else { of_class };
    let (chosen, why) = match candidates.as_slice() {
        [one] => (*one, None),
        several if by_lines.is_some_and(|at| several.contains(&at)) => {
            (by_lines.unwrap_or_default(), Some("by its lines, which fit, as do those of all others of that name"))
        }
        several => match tell_apart(module, several, function) {
            Ok((chosen, why)) => (chosen, Some(why)),
            Err(why) => {
                let list: Vec<String> = several
                    .iter()
                    .map(|&at| format!("`{}` (line {})", module.selector(at), module.functions()[at].first_line))
                    .collect();
                return Ok(Err(format!("{why}; possible are {}", list.join(", "))));
            }
        },
    };
    let label = module.functions()[chosen].label();
    if label != function.name {
        findings.push(ImportRemark::correction(about, format!("`{}` is `{label}`", function.name)));
    }
    if let Some(why) = why {
        findings.push(ImportRemark::doubt(
            about,
            format!("{} functions have this name; `{label}` was chosen {why}", candidates.len()),
        ));
    }
    if let Some(lines) = function.lines
        && let Some(what) = line_fault(module, chosen, lines)
    {
        findings.push(ImportRemark::correction(about, what));
    }
    Ok(Ok(module.selector(chosen).to_string()))
}

fn indices(module: &Module, is: impl Fn(&Function) -> bool) -> Vec<usize> {
    module.functions().iter().enumerate().filter(|(_, function)| is(function)).map(|(at, _)| at).collect()
}

/// Whether a function's qualified name (such as `Class.method`) equals `wanted` or ends with a dot and `wanted`.
fn ends_with(name: &str, wanted: &str) -> bool {
    name == wanted || name.strip_suffix(wanted).is_some_and(|before| before.ends_with('.'))
}

/// Chooses one of several functions that have the published name. Also returns which of the published data decided.
fn tell_apart(
    module: &Module,
    candidates: &[usize],
    function: &PublishedFunction,
) -> Result<(usize, &'static str), String> {
    if let Some(source) = &function.source {
        let tokens = CodeTokens::new(source.as_bytes());
        let same: Vec<usize> = candidates
            .iter()
            .copied()
            .filter(|&at| {
                let whole = &module.functions()[at].whole;
                containment(&tokens, &CodeTokens::split(module.source(), whole.clone()), Identifiers::Kept)
                    >= SAME_SOURCE
            })
            .collect();
        if let [one] = same.as_slice() {
            return Ok((*one, "by its source"));
        }
    }
    let by_words = by_words(module, candidates, function);
    let by_lines: Vec<usize> = candidates
        .iter()
        .copied()
        .filter(|&at| function.lines.is_some_and(|lines| lines_agree(&module.functions()[at], lines)))
        .collect();
    match (by_words, by_lines.as_slice()) {
        (Some(words), [lines]) if words == *lines => Ok((words, "by its description and its lines")),
        (Some(_), [_]) => Err("its description matches one function and its lines another".to_owned()),
        (Some(words), _) => Ok((words, "by its description, because its lines are outdated")),
        (None, [lines]) => Ok((*lines, "by its lines alone")),
        (None, _) => Err(format!(
            "{} functions have this name, and the published data do not distinguish them",
            candidates.len()
        )),
    }
}

/// Returns the candidate that shares more words than every other candidate with the published texts: the function's
/// description and the paper's passage about it. Words that all candidates contain do not count.
fn by_words(module: &Module, candidates: &[usize], function: &PublishedFunction) -> Option<usize> {
    let published = words(&format!("{} {}", function.description, function.passage));
    let of: Vec<BTreeSet<String>> = candidates
        .iter()
        .map(|&at| {
            let found = &module.functions()[at];
            let text = String::from_utf8_lossy(&module.source()[found.whole.clone()]).into_owned();
            words(&format!("{} {text}", found.name))
        })
        .collect();
    let common: BTreeSet<&String> =
        of.first()?.iter().filter(|word| of.iter().all(|words| words.contains(*word))).collect();
    let mut scores: Vec<(usize, usize)> = of
        .iter()
        .zip(candidates)
        .map(|(words, &at)| {
            (words.iter().filter(|word| published.contains(*word) && !common.contains(word)).count(), at)
        })
        .collect();
    scores.sort_unstable();
    match scores.as_slice() {
        [.., (second, _), (best, at)] if best > second => Some(*at),
        _ => None,
    }
}

/// Returns the words of at least three letters in lower case; identifiers are split at `_` and at capitals.
fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut word = String::new();
    let mut previous = ' ';
    let end = |word: &mut String, words: &mut BTreeSet<String>| {
        if word.chars().count() >= 3 {
            words.insert(word.to_lowercase());
        }
        word.clear();
    };
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let next_is_small = characters.peek().is_some_and(|next| next.is_lowercase());
        let begins = c.is_uppercase() && (previous.is_lowercase() || (previous.is_uppercase() && next_is_small));
        if !c.is_alphabetic() || begins {
            end(&mut word, &mut words);
        }
        if c.is_alphabetic() {
            word.push(c);
        }
        previous = c;
    }
    end(&mut word, &mut words);
    words
}

/// Whether published line numbers fit this function: the header is the line of its `def`, and the end is its last line
/// or the line after that. The published first line of the body is ignored, because it was usually just assumed to
/// follow the header.
fn lines_agree(function: &Function, [header, _, end]: [usize; 3]) -> bool {
    header == function.first_line && ends_there(function, end)
}

/// Whether `end`, published as the function's last line, fits the function: it must be the last line or the line after
/// that.
fn ends_there(function: &Function, end: usize) -> bool {
    (function.last_line..=function.last_line + 1).contains(&end)
}

/// Describes the error in published line numbers; `None` if they are correct. Correct numbers are: for the header, a
/// line of the signature; for the start, the line after the signature; for the end, the line of the last statement.
fn line_fault(module: &Module, at: usize, [header, start, end]: [usize; 3]) -> Option<String> {
    let function = &module.functions()[at];
    let lines_in =
        |range: std::ops::Range<usize>| module.source()[range].split(|byte| *byte == b'\n').count().saturating_sub(1);
    let (first, last) = (function.first_line, function.last_line);
    let signature_end = first + lines_in(function.header.clone());
    let decorated = first - lines_in(function.whole.start..function.header.start);
    let what = if header < decorated && end >= first {
        format!("off by {:+}, and the range begins above the function", first as i64 - header as i64)
    } else if header < decorated || header > signature_end {
        format!("off by {:+}", first as i64 - header as i64)
    } else if header < first {
        "the header is a decorator's line".to_owned()
    } else if start <= signature_end {
        "the range begins inside the signature".to_owned()
    } else if end < last {
        format!("the range ends {} lines early", last - end)
    } else if start > signature_end + 1 || end > last {
        "the range begins or ends too late".to_owned()
    } else {
        return None;
    };
    Some(format!(
        "published: header in line {header}, body {start} to {end}; correct: header in line {first}, body {} to \
         {last} ({what})",
        signature_end + 1
    ))
}
