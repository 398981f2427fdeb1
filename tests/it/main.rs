//! Tests of the program end to end and of the library from outside. They are one binary, so that they are built and
//! linked once, with one module per subject. `cargo test --test it run::` runs the tests of one module.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "a test's helpers may panic")]

mod support;

mod bad_input;
mod bundled;
mod cached_results;
mod command;
mod comparison;
mod completions;
#[cfg(feature = "conda")]
mod conda;
mod curtail;
mod docs;
mod durability;
mod dynamic;
mod engines;
mod example_family;
mod export;
mod extension;
mod external_agents;
mod extraction;
mod factory;
mod family;
mod faults;
mod fixed;
mod forgeries;
mod function;
mod gpus;
mod harbor;
mod hidden;
mod hidden_tests;
mod image;
mod import;
mod import_tasks;
mod installed_agents;
mod interval;
mod invalid_arguments;
mod ledger;
mod library;
mod local_model;
mod masking_oracle;
mod masking_properties;
mod mcp;
mod modules;
mod mutants;
mod mutation;
mod new;
mod notebook;
mod page;
mod partial_stores;
mod provider;
mod regions;
mod rejected_papers;
mod rescore;
mod right_programs;
mod run;
mod sandbox;
mod scrub;
mod serve;
mod shards;
mod slurm;
mod suite;
mod suite_visibility;
mod terminal;
mod tokens;
mod verifiers;
mod verify;
mod view;
