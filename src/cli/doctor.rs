//! `autoexperiment doctor`: shows what works on this machine, and how to get the rest.

use super::model::{GivenPrice, parse_price};
use super::probe;
use super::shared::{PlaceOptions, SuiteOptions, print, print_json};
use crate::error::{Error, Result};
use crate::model::{self, Description};
use crate::report::clean;
use crate::run::machine::private;
use crate::sandbox::{SandboxKind, choose, doctor};
use crate::suite::{Suite, bundled, secrets};

/// Show what works on this machine, and how to get the rest
///
/// Ends with exit code 5 if attempts cannot be sandboxed here.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment doctor\n  autoexperiment doctor --json\n  autoexperiment doctor --probe openai:gpt-5-mini"
)]
pub struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Ask this model one question instead, and show whether it answers, at what price, and what it can do. Costs as
    /// much as a question of a few hundred tokens.
    #[arg(long, value_name = "MODEL", conflicts_with = "json")]
    probe: Option<String>,
    /// Address of an OpenAI-compatible server with the model to probe.
    #[arg(long, value_name = "URL", requires = "probe")]
    base_url: Option<String>,
    /// Price of the model to probe, as in `run`.
    #[arg(long, value_name = "PRICE", value_parser = parse_price, requires = "probe")]
    price: Option<GivenPrice>,
    /// Features of the model to probe, as in `run`.
    #[arg(long, value_name = "NAME=VALUE,...|FILE", requires = "probe")]
    describe: Option<Description>,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    places: PlaceOptions,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    let cache = arguments.places.cache()?;
    let scratch = arguments.places.scratch();
    let mut hidden = private(&cache, &scratch);
    // Sandboxes also hide the suite's folder, unless the folder does not contain a suite.
    hidden.extend(arguments.suite.own()?.filter(|suite| Suite::open(suite).is_ok()));
    if let Some(spec) = &arguments.probe {
        let description = arguments.describe.clone().unwrap_or_default();
        return probe::probe(spec, arguments.base_url.as_deref(), arguments.price, description).await;
    }
    let secrets = match arguments.suite.own()?.filter(|suite| Suite::open(suite).is_ok()) {
        Some(suite) => secrets(&suite),
        None => bundled().map(|suite| secrets(&suite)).unwrap_or_default(),
    };
    let mut findings = doctor::examine(&cache, &scratch, &hidden, &secrets).await;
    findings.extend(model::keys().into_iter().map(|key| doctor::DoctorResult {
        name: key.variable,
        ok: key.is_set,
        detail: format!("the key for `{}:NAME` is {}", key.provider, if key.is_set { "set" } else { "not set" }),
        remedy: None,
    }));
    if arguments.json {
        print_json(&findings)?;
    } else {
        for finding in &findings {
            let mark = if finding.ok { "ok     " } else { "missing" };
            print(&format!("{mark}  {}: {}\n", finding.name, clean(&finding.detail)))?;
            if let Some(remedy) = &finding.remedy {
                print(&format!("         {}\n", clean(remedy)))?;
            }
        }
    }
    choose(SandboxKind::Local)
        .await
        .map(|_| ())
        .map_err(|error| Error::machine("attempts cannot be sandboxed on this machine").because(error))
}
