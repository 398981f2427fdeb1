//! Mutants judged by Python's own compiler: every mutant of functions drawn from the standard library compiles, changes
//! Python's syntax tree, and leaves every byte outside the function's body unchanged.

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use autoexperiment::code::{Module, choose, index_tree};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::support::judge::{Judge, standard_library};

/// Number of functions drawn; `AUTOEXPERIMENT_ORACLE=full` draws ten times as many.
const FUNCTIONS: usize = 300;

/// One of this many mutants is also parsed from scratch. This checks the usual test of a mutant, which parses only the
/// changed part.
const PARSED_ONE_IN: usize = 10;

/// Folders that are left out: other packages, and files that only Python's own tests or an old Python can read, which
/// do not resemble research code.
const FOREIGN: [&str; 4] = ["site-packages", "dist-packages", "test", "lib2to3"];

#[test]
#[ignore = "judges tens of thousands of mutants, which takes a minute"]
fn python_compiles_every_mutant_of_functions_of_its_standard_library() {
    let full = std::env::var("AUTOEXPERIMENT_ORACLE").is_ok_and(|value| value == "full");
    judge_mutants(&standard_library(), if full { 10 * FUNCTIONS } else { FUNCTIONS });
}

#[test]
fn python_compiles_every_mutant_of_the_functions_of_its_package_json() {
    judge_mutants(&standard_library().join("json"), 10);
}

/// Makes Python judge all mutants of functions drawn from the modules below a folder.
fn judge_mutants(library: &Path, functions_drawn: usize) {
    let foreign = |path: &Path| path.components().any(|part| FOREIGN.iter().any(|name| part.as_os_str() == *name));
    let modules: Vec<Module> = index_tree(library)
        .into_iter()
        .filter(|(path, _)| !foreign(path))
        .filter_map(|(_, module)| module.ok())
        .collect();
    let functions = |(at, module): (usize, &Module)| {
        (0..module.functions().len()).map(move |index| (at, index)).collect::<Vec<_>>()
    };
    let mut drawn: Vec<(usize, usize)> = modules.iter().enumerate().flat_map(functions).collect();
    let seed =
        std::env::var("AUTOEXPERIMENT_ORACLE_SEED").map_or_else(|_| rand::rng().random(), |seed| seed.parse().unwrap());
    drawn.shuffle(&mut StdRng::seed_from_u64(seed));
    drawn.truncate(functions_drawn);
    assert_eq!(drawn.len(), functions_drawn);

    let mut judge = Judge::start("python3".as_ref(), "mutant_oracle.py", &[]);
    let (mut judged, mut enough, mut seconds, mut wrong) = (0_usize, 0, 0.0, Vec::new());
    for (at, function) in drawn {
        let module = &modules[at];
        let begin = Instant::now();
        let mutants = module.mutants(function).unwrap();
        seconds += begin.elapsed().as_secs_f64();
        enough += usize::from(choose(&mutants, 12, seed).len() == 12);
        let body = &module.functions()[function].body;
        let behind = &module.source()[body.end..];
        let label = format!("{}::{}", module.path().display(), module.functions()[function].label());
        judge.send(json!({"op": "file", "line": module.functions()[function].first_line}), module.source());
        let mut texts = HashSet::new();
        for mutant in &mutants {
            let text = module.mutant_text(mutant);
            let mut complain = |what: String| wrong.push(format!("{label}: {}: {what}", mutant.id));
            if !text.starts_with(&module.source()[..body.start]) || !text.ends_with(behind) {
                complain("changed outside of the body".to_owned());
            }
            judge.send(json!({"op": "mutant"}), &text);
            if let Some(what) = judge.answer().as_str() {
                complain(what.to_owned());
            }
            if judged.is_multiple_of(PARSED_ONE_IN) {
                match Module::parse("m.py", text.clone()) {
                    Ok(after) if after.functions().len() == module.functions().len() => {}
                    Ok(_) => complain("functions came or went".to_owned()),
                    Err(error) => complain(error.to_string()),
                }
            }
            judged += 1;
            if !texts.insert(text) {
                complain("is made twice".to_owned());
            }
        }
    }
    judge.end();
    println!(
        "seed {seed}: {judged} mutants, {:.0} a second, {enough} functions have 12 or more",
        judged as f64 / seconds
    );
    let shown: Vec<&str> = wrong.iter().take(40).map(String::as_str).collect();
    assert!(shown.is_empty(), "seed {seed}: {} of {judged} wrong, among them:\n{}", wrong.len(), shown.join("\n"));
    assert!(judged > 5 * functions_drawn, "only {judged} mutants");
}
