//! What `run`, `resume` and `verify-runs` share: opening verifiers, and letting them choose among stored attempts.

use std::sync::Arc;

use super::model::{absolute_spec, open_choice};
use crate::error::{Error, Kind, Result};
use crate::model::Model;
use crate::run::event::{Observer, RunEvent};
use crate::run::{Catalogue, ModelChoice, Store};
use crate::verifier::stored::{Group, Purse, verify_run};
use crate::verifier::{self, Verifier};

/// Opens verifiers, without any traffic. `choice` is the run's model, `opened` the same where it is open already.
///
/// # Errors
/// Kind `Usage` for a verifier that does not exist, and what opening a model fails with.
pub fn open(
    names: &[String],
    orders: u32,
    choice: Option<&ModelChoice>,
    opened: Option<&Arc<dyn Model>>,
) -> Result<Vec<Arc<dyn Verifier>>> {
    let models = |named: Option<&str>| match (named, choice, opened) {
        (Some(named), ..) => open_choice(&named_choice(named, choice)?).map(Some),
        (None, _, Some(model)) => Ok(Some(model.clone())),
        (None, Some(choice), None) => open_choice(choice).map(Some),
        (None, None, None) => Ok(None),
    };
    names.iter().map(|name| verifier::open(name, &models, orders)).collect()
}

/// The model `model:NAME`. One with a provider is that provider's, at its list price; one without stands beside the run's
/// own model, behind the same `--base-url` and for the same `--price`.
fn named_choice(named: &str, own: Option<&ModelChoice>) -> Result<ModelChoice> {
    let beside = own.filter(|_| !named.contains(':'));
    Ok(ModelChoice {
        spec: absolute_spec(named)?,
        base_url: beside.and_then(|own| own.base_url.clone()),
        price: beside.and_then(|own| own.price),
        record: own.and_then(|own| own.record.clone()).filter(|_| !named.starts_with("replay:")),
        request_timeout: own.and_then(|own| own.request_timeout),
        retries: own.map_or_else(|| crate::model::Options::default().retries, |own| own.retries),
    })
}

/// A verifier's name as it is kept with a run: the files that it names mean the same in every working folder.
pub fn absolute(name: &str) -> Result<String> {
    match name.split_once("model:") {
        Some((before, named)) if before.is_empty() || before.ends_with('+') => {
            Ok(format!("{before}model:{}", absolute_spec(named)?))
        }
        _ => Ok(name.to_owned()),
    }
}

/// Lets all verifiers choose, one after another. One that may not spend any more does not keep those from choosing that
/// cost nothing: its error comes back at the end.
///
/// # Errors
/// The first of the verifiers' errors.
pub async fn choose(
    store: &Store,
    groups: &[Group<'_>],
    catalogue: &Catalogue,
    verifiers: &[Arc<dyn Verifier>],
    purse: &Purse,
    observer: &(dyn Observer + Sync),
) -> Result<()> {
    let mut first: Option<Error> = None;
    for verifier in verifiers {
        let name = verifier.name();
        let told = |done: usize, total: usize| {
            observer.on(RunEvent::Stage(format!("verifier `{name}`: {done} of {total} samples")));
        };
        match verify_run(store, groups, catalogue, verifier.as_ref(), purse, &told).await {
            Ok(_) => {}
            Err(error) if matches!(error.kind, Kind::CostLimit | Kind::Model) => {
                first.get_or_insert(error);
            }
            Err(error) => return Err(first.unwrap_or(error)),
        }
    }
    first.map_or(Ok(()), Err)
}
