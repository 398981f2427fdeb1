//! Opens the model that a user names.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use genai::adapter::AdapterKind;

use super::cached::CachedModel;
use super::features::{Description, ModelTarget};
use super::price::Price;
use super::provider::{Provider, ProviderSettings};
use super::record::Recorder;
use super::replay::Replay;
use super::scripted::ScriptedModel;
use super::{Model, Usage};
use crate::error::{Error, FailureKind, Result};

/// Environment variable with the key for the server at [`ModelAccess::base_url`]. The providers' own keys are never
/// sent to another server.
const OWN_SERVER_KEY: &str = "AUTOEXPERIMENT_API_KEY";

const FORMS: &str = "give `openai:NAME`, `anthropic:NAME`, `gemini:NAME`, `scripted:FILE`, `replay:FILE`, or the \
                     name of a model behind `--base-url`";

/// How a model is reached and priced.
#[derive(Debug, Clone)]
pub struct ModelAccess {
    /// Address of a server to use instead of the provider's, up to and including the version:
    /// `http://127.0.0.1:8080/v1`. A key is not required; if the variable `AUTOEXPERIMENT_API_KEY` is set, it is sent.
    /// The address must not contain a user name, a password or a query. Such a server requires a price.
    pub base_url: Option<String>,
    /// Dollars per million tokens read and written, instead of the list price. Without [`ModelAccess::cache_price`],
    /// cached tokens cost as much as other tokens.
    pub price: Option<(f64, f64)>,
    /// Dollars per million tokens read from the provider's cache and written to it. Used only together with
    /// [`ModelAccess::price`].
    pub cache_price: Option<(f64, f64)>,
    /// The user's description of the model, which takes precedence over this program's table of known models.
    pub description: Description,
    /// A folder where replies are cached for later runs, and the run's seed.
    pub cache: Option<(PathBuf, u64)>,
    /// A file to which every call is appended; `replay:FILE` plays it back.
    pub record: Option<PathBuf>,
    /// Time limit of one try of a call, from the first byte sent to the last byte received.
    pub request_timeout: Duration,
    /// Maximum number of retries of a call.
    pub retries: usize,
    /// Wait before the first retry. It doubles with each retry, up to a minute. A random time of up to the same length
    /// is added, so that the attempts of a run do not all retry at once.
    pub first_wait: Duration,
}

impl Default for ModelAccess {
    /// Uses the provider's server and list price. Neither records calls nor caches replies. Allows 600 seconds per try
    /// and 5 retries, the first after 1 second.
    fn default() -> Self {
        Self {
            base_url: None,
            price: None,
            cache_price: None,
            description: Description::default(),
            cache: None,
            record: None,
            request_timeout: Duration::from_mins(10),
            retries: 5,
            first_wait: Duration::from_secs(1),
        }
    }
}

/// Opens the model that `spec` names, without any network traffic:
///
/// - `openai:NAME`, `anthropic:NAME`, `gemini:NAME`: a provider's model, with the key in `OPENAI_API_KEY`,
///   `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`; with [`ModelAccess::base_url`], the same protocol at another server.
/// - `NAME` alone: with [`ModelAccess::base_url`], a model on that OpenAI-compatible server; otherwise a provider's
///   model, recognised by its name (`gpt-`, `chatgpt-`, `o1`, `o3`, `o4`; `claude-`; `gemini-`).
/// - `scripted:FILE`: replies written in a file.
/// - `replay:FILE`: calls recorded with [`ModelAccess::record`].
///
/// # Errors
/// Kind `Usage` for an unknown form, unsuitable options or a broken file, `Model` for a missing key or an unknown
/// price, `Machine` for a file that cannot be read or written.
pub fn open(spec: &str, options: &ModelAccess) -> Result<Arc<dyn Model>> {
    open_with(spec, options, &|name| std::env::var(name).ok())
}

/// Same as [`open`], but looks up environment variables by a given function.
pub(super) fn open_with(
    spec: &str,
    options: &ModelAccess,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Model>> {
    let model: Arc<dyn Model> = match spec.split_once(':') {
        Some(("scripted", file)) => {
            refuse_provider_options(spec, options)?;
            Arc::new(ScriptedModel::load(spec, Path::new(file))?)
        }
        Some(("replay", file)) => {
            refuse_provider_options(spec, options)?;
            if options.record.is_some() {
                return Err(Error::usage(format!("`{spec}` cannot be recorded again"))
                    .hint("leave out `--record`: replies of `replay:FILE` already come from a recording"));
            }
            Arc::new(Replay::load(spec, Path::new(file))?)
        }
        _ => Arc::new(Provider::new(provider_settings(spec, options, variable)?)?),
    };
    let model = match &options.cache {
        Some((folder, seed)) => {
            let identity = format!("{spec} {:?} {:?}", options.base_url, options.description);
            Arc::new(CachedModel::new(model, identity, folder, *seed))
        }
        None => model,
    };
    match &options.record {
        Some(path) => Ok(Arc::new(Recorder::open(model, path)?)),
        None => Ok(model),
    }
}

fn refuse_provider_options(spec: &str, options: &ModelAccess) -> Result<()> {
    let given = match (&options.base_url, &options.price, &options.cache) {
        (Some(_), ..) => "--base-url",
        (None, Some(_), _) => "--price",
        (None, None, Some(_)) => "--model-cache",
        (None, None, None) => return Ok(()),
    };
    Err(Error::usage(format!("`{given}` cannot be used with `{spec}`"))
        .hint("leave it out: scripts and recordings contain their replies and prices"))
}

/// A provider that this program knows.
struct KnownProvider {
    prefix: &'static str,
    kind: AdapterKind,
    key: &'static str,
    /// The provider's name in the price list.
    listed: &'static str,
    /// Prefixes of model names that only this provider uses.
    names: &'static [&'static str],
}

const PROVIDERS: [KnownProvider; 3] = [
    KnownProvider {
        prefix: "openai",
        kind: AdapterKind::OpenAI,
        key: "OPENAI_API_KEY",
        listed: "openai",
        names: &["gpt-", "chatgpt-", "o1", "o3", "o4"],
    },
    KnownProvider {
        prefix: "anthropic",
        kind: AdapterKind::Anthropic,
        key: "ANTHROPIC_API_KEY",
        listed: "anthropic",
        names: &["claude-"],
    },
    KnownProvider {
        prefix: "gemini",
        kind: AdapterKind::Gemini,
        key: "GEMINI_API_KEY",
        listed: "google",
        names: &["gemini-"],
    },
];

/// Returns the provider of the model that `spec` names, and the name that the provider uses for this model.
fn provider_of(spec: &str, own_server: bool) -> Result<(&'static KnownProvider, &str)> {
    let prefixed = spec.split_once(':').and_then(|(prefix, model)| {
        PROVIDERS.iter().find(|provider| provider.prefix == prefix).map(|provider| (provider, model))
    });
    let (provider, model) = match prefixed {
        Some(found) => found,
        None if own_server => (&PROVIDERS[0], spec),
        None => {
            let provider = PROVIDERS.iter().find(|known| known.names.iter().any(|name| spec.starts_with(name)));
            let unknown = || Error::usage(format!("`{spec}` does not say which provider has the model")).hint(FORMS);
            (provider.ok_or_else(unknown)?, spec)
        }
    };
    if model.is_empty() || model.chars().any(char::is_whitespace) {
        return Err(Error::usage(format!("`{spec}` names no model")).hint(FORMS));
    }
    Ok((provider, model))
}

fn provider_settings(
    spec: &str,
    options: &ModelAccess,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ProviderSettings> {
    let (provider, model) = provider_of(spec, options.base_url.is_some())?;
    let base_url = options.base_url.as_deref().map(|url| checked_address("--base-url", url)).transpose()?;
    let key_from = |name: &str| variable(name).map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    let key = if base_url.is_some() {
        key_from(OWN_SERVER_KEY)
    } else {
        let missing = || {
            Error::new(FailureKind::Model, format!("no key for `{spec}`: the variable `{}` is not set", provider.key))
                .hint(format!("set `{}`, or use `scripted:FILE`, or your own server (`--base-url`)", provider.key))
        };
        Some(key_from(provider.key).ok_or_else(missing)?)
    };
    let said = &options.description;
    let described = said.price.as_deref().and_then(|price| match price {
        [read, written] => Some(((*read, *written), None)),
        [read, written, cached, cache_written] => Some(((*read, *written), Some((*cached, *cache_written)))),
        _ => None,
    });
    let given = options.price.map(|price| (price, options.cache_price)).or(described);
    let price = match (given, &base_url) {
        (Some(((input, output), cache)), _) => Price::given(input, output, cache)?,
        (None, None) => Price::listed(provider.listed, model)?,
        (None, Some(url)) => {
            return Err(Error::new(FailureKind::Model, format!("the price of `{model}` at `{url}` is unknown"))
                .hint("give dollars per million tokens read and written; `--price 0,0` says that it costs nothing"));
        }
    };
    Ok(ProviderSettings {
        name: spec.to_owned(),
        target: ModelTarget::new(provider.kind, model, base_url.is_some(), said),
        output: said.output,
        context: said.context,
        base_url,
        key,
        price,
        request_timeout: options.request_timeout,
        retries: options.retries,
        first_wait: options.first_wait,
    })
}

/// Whether a provider's key is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyState {
    /// The provider's name, as in `openai:NAME`.
    pub provider: &'static str,
    /// The environment variable for the key.
    pub variable: &'static str,
    /// Whether the variable is set.
    pub is_set: bool,
}

/// Reports for each provider whether its key is set, without the keys themselves.
#[must_use]
pub fn keys() -> Vec<KeyState> {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|key| !key.trim().is_empty());
    PROVIDERS
        .iter()
        .map(|known| KeyState { provider: known.prefix, variable: known.key, is_set: is_set(known.key) })
        .collect()
}

/// Returns the prices of a provider's model in dollars per million tokens, in this order: tokens read, tokens read from
/// the provider's cache, tokens written to this cache, tokens of replies.
///
/// # Errors
/// Returns the errors of [`open`].
pub fn prices(spec: &str, options: &ModelAccess) -> Result<[f64; 4]> {
    let price = provider_settings(spec, options, &|name| std::env::var(name).ok())?.price;
    let million = 1_000_000;
    let read = Usage { input: million, ..Usage::default() };
    let of = [
        read,
        Usage { cached: million, ..read },
        Usage { cache_written: million, ..read },
        Usage { output: million, ..Usage::default() },
    ];
    let mut prices = [0.0; 4];
    for (place, usage) in of.iter().enumerate() {
        prices[place] = price.cost(usage).map_err(|error| {
            Error::new(FailureKind::Model, format!("the price of `{spec}` is unknown")).because(error)
        })?;
    }
    Ok(prices)
}

/// Checks an HTTP address, the value of `option`, and adds the final slash that joining paths needs.
///
/// # Errors
/// Kind `Usage` if it is not an HTTP address, or if it contains a user name, a password or a query. Runs store the
/// address and reports show it, so it must not contain a key.
pub(super) fn checked_address(option: &str, url: &str) -> Result<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    if rest.contains('?') || rest.split(['/', '#']).next().is_some_and(|authority| authority.contains('@')) {
        let what = format!("the address in `{option}` contains a user name, a password or a query");
        let hint = format!("leave that out, because runs store the address; give a key in `{OWN_SERVER_KEY}`");
        return Err(Error::usage(what).hint(hint));
    }
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    if host.is_none_or(|host| host.is_empty() || host.starts_with('/') || host.chars().any(char::is_whitespace)) {
        return Err(Error::usage(format!("`{option} {url}` is not an HTTP address")).hint(format!(
            "give an address that ends with the API version, such as `{option} http://127.0.0.1:8080/v1`"
        )));
    }
    Ok(format!("{}/", url.trim_end_matches('/')))
}
