//! Opening verifiers, and letting several of them choose among stored attempts: at the end of a run, or later.

use std::sync::Arc;

use super::stored::{CostCap, Group, verify_run};
use super::{Verifier, open};
use crate::error::{Error, Kind, Result};
use crate::model::{self, Model, Probed};
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::{Catalogue, ModelChoice, Store, VerifierSpec};

/// Opens verifiers, without any traffic. `choice` is the run's model (without a name where only its server is given),
/// `opened` the same where it is open already.
///
/// # Errors
/// Kind `Usage` for a model verifier without a model, and what opening a model fails with.
pub fn open_all(
    specs: &[VerifierSpec],
    orders: u32,
    choice: Option<&ModelChoice>,
    opened: Option<&Arc<dyn Model>>,
) -> Result<Vec<Arc<dyn Verifier>>> {
    let models = |named: Option<&str>| match (named, choice, opened) {
        // No seed: what verifiers ask is not kept.
        (Some(named), ..) => named_choice(named, choice).open(0).map(Some),
        (None, _, Some(model)) => Ok(Some(model.clone())),
        (None, Some(choice), None) if !choice.spec.is_empty() => choice.open(0).map(Some),
        (None, _, None) => Ok(None),
    };
    specs.iter().map(|spec| open(spec, &models, orders)).collect()
}

/// The model `model:NAME`. With a provider in its name it is that provider's, at its list price; without, it is behind
/// the `--base-url` of the run's own model, for the same `--price`.
fn named_choice(named: &str, own: Option<&ModelChoice>) -> ModelChoice {
    let same_server = own.filter(|_| !named.contains(':'));
    ModelChoice {
        spec: named.to_owned(),
        base_url: same_server.and_then(|own| own.base_url.clone()),
        price: same_server.and_then(|own| own.price),
        cache_price: same_server.and_then(|own| own.cache_price),
        description: same_server.and_then(|own| own.description.clone()),
        cache: None,
        record: own.and_then(|own| own.record.clone()).filter(|_| !named.starts_with("replay:")),
        request_timeout: own.and_then(|own| own.request_timeout),
        retries: own.map_or_else(|| model::Options::default().retries, |own| own.retries),
    }
}

/// Looks whether the models that verifiers ask can be asked. `known` is one that was looked for already. Gives what that
/// cost.
///
/// # Errors
/// Those of [`model::reach`].
pub async fn reach(verifiers: &[Arc<dyn Verifier>], known: Option<&dyn Model>) -> Result<Probed> {
    let mut probed = Probed::default();
    let mut looked: Vec<&str> = known.map(Model::name).into_iter().collect();
    for asked in verifiers.iter().filter_map(|verifier| verifier.model()) {
        if !looked.contains(&asked.name()) {
            looked.push(asked.name());
            probed += model::reach(asked).await?;
        }
    }
    Ok(probed)
}

/// Lets all verifiers choose, one after another. One that may not spend any more does not keep those from choosing that
/// cost nothing: its error comes back at the end.
///
/// # Errors
/// The first of the verifiers' errors.
pub async fn choose_all(
    store: &Store,
    groups: &[Group<'_>],
    catalogue: &Catalogue,
    verifiers: &[Arc<dyn Verifier>],
    cost_cap: &CostCap,
    observer: &dyn Observer,
) -> Result<()> {
    let mut first: Option<Error> = None;
    for verifier in verifiers {
        let stage = Stage::new("verifier", &verifier.name());
        let told = |done: usize, total: usize| {
            observer.on(RunEvent::Stage(stage.counted(done, total, "samples")));
        };
        match verify_run(store, groups, catalogue, verifier.as_ref(), cost_cap, &told).await {
            Ok(_) => {}
            Err(error) if matches!(error.kind, Kind::CostLimit | Kind::Model) => {
                first.get_or_insert(error);
            }
            Err(error) => return Err(first.unwrap_or(error)),
        }
    }
    first.map_or(Ok(()), Err)
}
