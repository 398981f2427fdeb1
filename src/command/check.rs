//! Static checks of a repo's instructions, without running anything.

use super::calls::equal;
use super::context::oracle;
use super::loaded::LoadedCommands;
use crate::score::ml_bench::{Argument, ProgramKind, shipped_check, strict_check, strict_kind};

/// Lists the problems, each in a short phrase. Programs are not run here, so their recorded results (gold) are needed:
/// an instruction is faulty if it has no gold, or if its gold was recorded with another program than the manifest's.
#[must_use]
pub fn problems(loaded: &LoadedCommands) -> Vec<String> {
    let mut found = Vec::new();
    for instruction in &loaded.set.instructions {
        let mut wrong = |what: String| found.push(format!("instruction `{}`: {what}", instruction.id));
        if oracle(loaded, instruction).is_none() {
            wrong(format!("`{}` has no section `{}`", instruction.oracle.file, instruction.oracle.heading));
        }
        let asked = match instruction.required_arguments() {
            Ok(asked) => asked,
            Err(what) => {
                wrong(what);
                continue;
            }
        };
        let strict = strict_check(&instruction.gold, &asked, instruction.kind);
        for argument in asked.iter().zip(&strict.arguments).filter(|(_, hit)| !**hit).map(|(argument, _)| argument) {
            wrong(format!("its right program lacks the value of the argument `{}`", argument.name));
        }
        for argument in asked.iter().filter(|argument| !contains_value(&instruction.text, argument)) {
            wrong(format!("the text of the instruction lacks the value of the argument `{}`", argument.name));
        }
        if strict_kind(&instruction.gold) != Some(instruction.kind) {
            wrong("its right program is not of the `kind` that the manifest states".to_owned());
        }
        // ML-Bench's rule says that a program is Bash if it contains the name of a `.sh` or `.py` file, and Python
        // otherwise. If the manifest names no repo, Bash programs run commands of installed packages, whose names lack
        // these endings. In this case, the rule need not find the right kind.
        let shipped = shipped_check(&instruction.gold, &asked, instruction.kind);
        if !shipped.has_arguments() || (!shipped.kind && loaded.set.repo.is_some()) {
            wrong("its right program fails the published static checks".to_owned());
        }
        let Some(gold) = loaded.gold.as_ref().and_then(|gold| gold.results.get(&instruction.id)) else {
            wrong("it has no gold".to_owned());
            continue;
        };
        if gold.program.trim() != instruction.gold.trim() {
            wrong("gold was recorded with another program".to_owned());
        }
        for (name, value) in &instruction.expect.parsed {
            let parsed = gold.calls.iter().filter_map(|call| call.parsed.get(name));
            if !parsed.into_iter().any(|parsed| equal(parsed, value)) {
                wrong(format!("its right program does not give the argument `{name}` the value in `expect.parsed`"));
            }
        }
        if gold.calls.is_empty() && gold.functions.is_empty() && !instruction.expect.outcome {
            wrong(
                "nothing but its text can be judged: expect its outcome, or use a repo whose parser is argparse"
                    .to_owned(),
            );
        }
        if instruction.expect.outcome && gold.outcome.is_none() {
            wrong("gold has no outcome".to_owned());
        }
        for argument in asked.iter().filter(|argument| !gold.changes.contains_key(&argument.name)) {
            wrong(format!("changing the argument `{}` changes nothing", argument.name));
        }
    }
    found
}

/// Whether a text contains a value, either as a whole or each part of a list of values.
fn contains_value(text: &str, argument: &Argument) -> bool {
    let says = |value: &str| {
        let part = Argument { name: argument.name.clone(), value: value.to_owned() };
        // Pass the text as a code block without comment and quote characters, so that the check searches all of it.
        strict_check(&format!("```python\n{}\n```", text.replace(['#', '\''], " ")), &[part], ProgramKind::Python)
            .has_arguments()
    };
    says(&argument.value) || argument.value.split([',', '+']).all(says)
}
