//! Opens verifiers and lets them choose among stored attempts, at the end of a run or later.

use std::sync::Arc;

use super::stored::{AttemptGroup, CostCap, verify_run};
use super::{Verifier, open};
use crate::error::{Error, FailureKind, Result};
use crate::model::{self, Model, ProbeCost};
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::{Catalogue, ModelChoice, Store, VerifierSpec};

/// Opens verifiers without any network traffic. `choice` describes the run's model; its `spec` is empty if the user
/// gave only a server. `opened` is the run's model if it is already open.
///
/// # Errors
/// Kind `Usage` for a model verifier without a model, and the errors of opening a model.
pub fn open_all(
    specs: &[VerifierSpec],
    orders: u32,
    choice: Option<&ModelChoice>,
    opened: Option<&Arc<dyn Model>>,
) -> Result<Vec<Arc<dyn Verifier>>> {
    let models = |named: Option<&str>| match (named, choice, opened) {
        // Verifiers need no seed: their replies aren't cached.
        (Some(named), ..) => named_choice(named, choice).open(0).map(Some),
        (None, _, Some(model)) => Ok(Some(model.clone())),
        (None, Some(choice), None) if !choice.spec.is_empty() => choice.open(0).map(Some),
        (None, _, None) => Ok(None),
    };
    specs.iter().map(|spec| open(spec, &models, orders)).collect()
}

/// Settings of the model in `model:NAME`. A name with a provider prefix uses that provider at its list price. A name
/// without a prefix uses the `--base-url`, prices and description of the run's own model.
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
        retries: own.map_or_else(|| model::ModelAccess::default().retries, |own| own.retries),
    }
}

/// Checks that the verifiers' models can be reached, and returns the cost of these checks. `known` is a model that has
/// been checked already.
///
/// # Errors
/// Returns the errors of [`model::reach`].
pub async fn reach(verifiers: &[Arc<dyn Verifier>], known: Option<&dyn Model>) -> Result<ProbeCost> {
    let mut probed = ProbeCost::default();
    let mut looked: Vec<&str> = known.map(Model::name).into_iter().collect();
    for asked in verifiers.iter().filter_map(|verifier| verifier.model()) {
        if !looked.contains(&asked.name()) {
            looked.push(asked.name());
            probed += model::reach(asked).await?;
        }
    }
    Ok(probed)
}

/// Lets all verifiers choose among the attempts of each group, one verifier after another. If a verifier reaches the
/// cost limit or its model fails, the other verifiers still run, because some need no model; the error is returned at
/// the end.
///
/// # Errors
/// Returns the first of the verifiers' errors.
pub async fn choose_all(
    store: &Store,
    groups: &[AttemptGroup<'_>],
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
            Err(error) if matches!(error.kind, FailureKind::CostLimit | FailureKind::Model) => {
                first.get_or_insert(error);
            }
            Err(error) => return Err(first.unwrap_or(error)),
        }
    }
    first.map_or(Ok(()), Err)
}
