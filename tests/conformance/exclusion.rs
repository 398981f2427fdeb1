//! Programs that try to have their failure excluded from the results, by ending their sandbox in a way that looks like
//! the machine's fault. They are in `tests/exclusion/programs.txt`. Whatever happens to the sandbox, there must be no
//! evidence that the machine failed, and no process may live on.

use std::time::{Duration, Instant};

use autoexperiment::sandbox::{Command, Evidence, ExecLimits, Fault, patience};

use super::fixture::{Fixture, MIB, Outcome};
use crate::ensure;

const PROGRAMS: &str = include_str!("../exclusion/programs.txt");
/// Environment variable; `all` runs all programs instead of a sample.
pub const WHICH: &str = "AUTOEXPERIMENT_EXCLUSION";
/// Number of cases below, each of which runs an equal part of the programs.
const PARTS: usize = 10;
/// Time limit of a program.
const WALL: Duration = Duration::from_secs(4);
/// Maximum time that a program may keep the harness busy: its time limit [`WALL`], the longest extension of that limit
/// on a busy machine (`patience`), and the time limits of the init's own work.
const LONGEST: Duration = Duration::from_mins(3);

/// Whether all programs run.
pub fn is_whole() -> bool {
    std::env::var_os(WHICH).is_some_and(|which| which == "all")
}

/// Returns all programs, as pairs of name and script.
fn programs() -> Vec<(String, String)> {
    let mut programs = Vec::new();
    for block in format!("\n{PROGRAMS}").split("\n== ").filter(|block| !block.trim().is_empty()) {
        let (head, script) = block.split_once('\n').unwrap();
        match head.split_once(": ") {
            None => programs.push((head.to_owned(), script.to_owned())),
            Some((name, words)) => programs
                .extend(words.split_whitespace().map(|word| (format!("{name}-{word}"), script.replace('@', word)))),
        }
    }
    programs
}

/// Runs the programs of one of the [`PARTS`] parts. Unless all programs were requested ([`is_whole`]), runs only the
/// one in the middle of this part.
async fn run(fixture: &mut Fixture<'_>, part: usize) -> Outcome {
    let all = programs();
    ensure!(all.len() >= 120, "only {} programs", all.len());
    let mut chosen: Vec<_> = all.into_iter().skip(part).step_by(PARTS).collect();
    if !is_whole() {
        let middle = chosen.len() / 2;
        chosen = chosen.drain(middle..=middle).collect();
    }
    let mut wrong = Vec::new();
    for (name, script) in &chosen {
        let begun = Instant::now();
        match one(fixture, script).await? {
            (None, Some(evidence)) => wrong.push(format!("{name} is excluded: {evidence}")),
            (Some(loss), Some(evidence)) => wrong.push(format!("{name} is excluded: {loss}: {evidence}")),
            (Some(loss), None) => println!("  {}: {name} ended its sandbox: {loss}", fixture.backend.name()),
            (None, None) => {}
        }
        if begun.elapsed() > LONGEST {
            wrong.push(format!("{name} took {:?}", begun.elapsed()));
        }
    }
    ensure!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), chosen.len());
    Ok(())
}

/// Runs a program and then uses the sandbox like the harness does. Returns how the sandbox was lost, and evidence that
/// the machine lost it.
async fn one(fixture: &mut Fixture<'_>, script: &str) -> Result<(Option<String>, Option<Evidence>), String> {
    fixture.limits.memory = 256 * MIB;
    let mut inside = fixture.start().await?;
    let limits = |wall: Duration| ExecLimits {
        wall,
        patience: patience(wall),
        grace: Duration::from_millis(200),
        output: 10_000,
    };
    let mut lost = None;
    let mut note = |fault: Fault| {
        if let Fault::Lost(loss) = fault {
            lost.get_or_insert(loss);
        }
    };
    for command in [script, "echo fine"] {
        let _ = inside.sandbox.exec(&Command::shell(command), &limits(WALL)).await.map_err(&mut note);
    }
    let _ = inside.read("hello.txt").await.map_err(&mut note);
    let _ = inside.sandbox.list("folder".as_ref()).await.map_err(&mut note);
    let _ = inside.sandbox.destroy().await.map_err(&mut note);
    let Some(loss) = lost else { return Ok((None, None)) };
    let evidence = match loss.evidence() {
        Some(evidence) => Some(evidence.clone()),
        None => fixture.backend.examine(&std::env::temp_dir()).await,
    };
    Ok((Some(loss.to_string()), evidence))
}

crate::cases! {
    exclusion_by_programs_0(fixture) { run(fixture, 0).await?; }
    exclusion_by_programs_1(fixture) { run(fixture, 1).await?; }
    exclusion_by_programs_2(fixture) { run(fixture, 2).await?; }
    exclusion_by_programs_3(fixture) { run(fixture, 3).await?; }
    exclusion_by_programs_4(fixture) { run(fixture, 4).await?; }
    exclusion_by_programs_5(fixture) { run(fixture, 5).await?; }
    exclusion_by_programs_6(fixture) { run(fixture, 6).await?; }
    exclusion_by_programs_7(fixture) { run(fixture, 7).await?; }
    exclusion_by_programs_8(fixture) { run(fixture, 8).await?; }
    exclusion_by_programs_9(fixture) { run(fixture, 9).await?; }
}
