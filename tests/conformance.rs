//! Hostile cases that every sandbox backend must withstand, written once against the `Backend` trait.
//!
//! Each case gets sandboxes from a backend and does its worst inside; afterwards nothing of it may be alive on the
//! host. What a weaker backend cannot meet is listed in `weaker` by name with the reason, and printed, not hidden.
//! An own `main` instead of the usual test harness, because this program is also what runs inside the sandboxes: as
//! `conformance hostile ACTION` it does what no shell command can.
//!
//! `cargo test --test conformance` runs all cases in local sandboxes, `-- --ignored` in containers, `-- --include-ignored` in
//! both; `-- WORD` only cases whose name contains the word, `-- docker` (`podman`, `local`) only that kind of sandbox.

#![allow(clippy::unwrap_used, reason = "a test whose own set-up fails should stop")]

mod conformance {
    pub mod confinement;
    pub mod exclusion;
    pub mod files;
    pub mod fixture;
    pub mod harness;
    pub mod hoards;
    pub mod hostile;
    pub mod kernel;
    pub mod leftovers;
    pub mod listener;
    pub mod probes;
    pub mod processes;
    pub mod resources;
    pub mod runner;
    pub mod search;
    pub mod visibility;
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["hostile", kind @ ("probe-files" | "probe-processes"), rest @ ..] => conformance::probes::act(kind, rest),
        ["hostile", action, rest @ ..] => conformance::hostile::act(action, rest),
        ["doomed-harness", mode, marker] => conformance::harness::doomed(mode, marker),
        ["starved-harness", folder] => conformance::harness::starved(folder),
        words => conformance::runner::run(&[words, kinds(words)].concat()),
    }
}

/// The kinds of sandbox to try, unless the words name some: containers, as other tests that need an engine, only with the
/// flags by which the usual test harness is asked for tests that are ignored.
fn kinds(words: &[&str]) -> &'static [&'static str] {
    if words.iter().any(|word| ["local", "docker", "podman"].contains(word)) || words.contains(&"--include-ignored") {
        &[]
    } else if words.contains(&"--ignored") {
        &["docker", "podman"]
    } else {
        println!("docker and podman: ignored, need an engine");
        &["local"]
    }
}
