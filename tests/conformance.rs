//! Hostile cases that every sandbox backend must withstand, written once against the `Backend` trait.
//!
//! Each case starts sandboxes of a backend and attacks from inside them. Afterwards, none of the case's processes may
//! be alive on the host. Cases that a weaker backend cannot meet are listed by name, with the reason, in the function
//! `weaker` of `conformance/runner.rs`, and are printed. This test has its own `main` instead of the usual test
//! harness, because the same program also runs inside the sandboxes: as `conformance hostile ACTION` it does what no
//! shell command can.
//!
//! `cargo test --test conformance` runs all cases in local sandboxes, `-- --ignored` in containers,
//! `-- --include-ignored` in both; `-- WORD` runs only cases whose name contains the word, and `-- docker` (`podman`,
//! `local`) only that kind of sandbox.

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
    pub mod terminals;
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

/// Returns the kinds of sandbox to test, as further words for the command line. Returns none if its words already name
/// a kind, or if all kinds are to be tested. Containers need an engine. Like ignored tests of the usual test harness,
/// they are therefore only tested with `--ignored` or `--include-ignored`.
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
