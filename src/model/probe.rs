//! Checks that a provider can be reached, accepts the key and has the model, before anything is built for the run.
//!
//! A connection shows that the server runs. The server's list of models, which is free, shows that the server accepts
//! the key. A test call to the model is made only if the list leaves doubt, because the model's name is missing or
//! access to the list is denied: models have aliases, some servers accept any name, and some never give out a list.

use std::time::Duration;

use genai::webc;
use serde_json::Value;

use super::capacity::limits_in;
use super::failure::says_no_access;
use super::finish::ClassifiedReply;
use super::provider::{Provider, SHORT_QUESTION, estimate, told_nothing};
use super::{Message, Model, ModelError, ProbeCost, QueryFailed, Request, Role, wire};
use crate::error::{Error, FailureKind, Result, with_causes};

/// Maximum wait for a connection, and separately for a list of models.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 10 });

/// Maximum wait for an answer from a URL path that only some kinds of servers have, such as `/props`.
const ELSEWHERE: Duration = Duration::from_secs(2);

/// Number of tries to reach a provider's own server, because a network may fail briefly.
const TRIES: u32 = 3;

/// Maximum tokens of the test call's reply; some models do not accept a smaller bound.
const REPLY: u32 = 16;

/// Maximum number of model names quoted in an error.
const SHOWN: usize = 8;

/// Maximum characters of each quoted model name.
const LONGEST_NAME: usize = 60;

/// Phrases, in lower case, for a missing model in an answer with status 404.
const NO_MODEL: [&str; 5] = ["model_not_found", "no such model", "unknown model", "model not found", "invalid model"];

/// Result of looking up the model in the server's list of models.
enum ListVerdict {
    /// The model is listed, or the server gave no usable list.
    Fine,
    /// The server's list, with these names, does not contain the model.
    Lacks(Vec<String>),
    /// The server denied access to the list, so it may deny calls to the model, too.
    Denied,
}

impl Provider {
    /// Checks that the provider can be reached and does not deny the key or the model.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] if the server cannot be reached; [`ModelError::Denied`], with the server's message,
    /// if the server denies the test call.
    pub(super) async fn look(&self) -> Result<ProbeCost, QueryFailed> {
        self.connect().await?;
        let mut tries = 0;
        let listed = loop {
            tries += 1;
            // A timeout is not an error: a server that is busy with a long reply may be slow to send the list.
            let Ok(listed) = tokio::time::timeout(TIMEOUT, self.listed()).await else {
                return Ok(ProbeCost::default());
            };
            match listed {
                Ok(listed) => break listed,
                Err(_) if tries < TRIES && self.settings.base_url.is_none() => {
                    tokio::time::sleep(self.settings.first_wait * tries).await;
                }
                Err(error) => return Err(error.into()),
            }
        };
        let names = match listed {
            ListVerdict::Fine => return Ok(ProbeCost::default()),
            ListVerdict::Lacks(names) => names,
            ListVerdict::Denied => Vec::new(),
        };
        self.ask_once().await.map_err(|mut failed| {
            if !names.is_empty() {
                let shown: Vec<String> = names
                    .iter()
                    .take(SHOWN)
                    .map(|name| format!("`{}`", name.chars().take(LONGEST_NAME).collect::<String>()))
                    .collect();
                let more = if names.len() > SHOWN { ", ..." } else { "" };
                failed.error.note(&format!(" (it has {}{more})", shown.join(", ")));
            }
            failed
        })
    }

    /// Checks that the user's server accepts connections. Does nothing if a proxy is set, because the server may be
    /// reachable only through the proxy.
    async fn connect(&self) -> Result<(), ModelError> {
        let Some(url) = &self.settings.base_url else { return Ok(()) };
        let proxies = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
        if proxies.iter().any(|name| std::env::var_os(name).is_some()) {
            return Ok(());
        }
        let Some(address) = address(url) else { return Ok(()) };
        let down = |why: String| Err(ModelError::Unavailable(format!("nothing answers at `{address}`: {why}")));
        match tokio::time::timeout(TIMEOUT, tokio::net::TcpStream::connect(&address)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => down(error.to_string()),
            Err(_) => down(format!("no connection within {} s", TIMEOUT.as_secs())),
        }
    }

    /// Looks the model up in the server's list of models. An answer that is not a list counts as fine; only a missing
    /// connection is an error.
    async fn listed(&self) -> Result<ListVerdict, ModelError> {
        let target = &self.settings.target;
        if let Some(url) = self.settings.base_url.as_ref().filter(|_| target.own_server) {
            return self.listed_with_limits(url).await;
        }
        let error = match self.client.all_model_names(target.kind, ()).await {
            Ok(names) if names.is_empty() || names.contains(&target.model) => return Ok(ListVerdict::Fine),
            Ok(names) => return Ok(ListVerdict::Lacks(names)),
            Err(error) => error,
        };
        let (genai::Error::WebAdapterCall { webc_error, .. } | genai::Error::WebModelCall { webc_error, .. }) = &error
        else {
            return Ok(ListVerdict::Fine);
        };
        match webc_error {
            webc::Error::Reqwest(error) if error.is_connect() => {
                Err(ModelError::Unavailable(format!("it cannot be reached: {}", with_causes(error))))
            }
            webc::Error::ResponseFailedStatus { status, body, .. } if denies(status.as_u16(), body, &target.model) => {
                Ok(ListVerdict::Denied)
            }
            _ => Ok(ListVerdict::Fine),
        }
    }

    /// Looks the model up in the list of the user's server, and learns limits on replies and conversations from the
    /// list.
    async fn listed_with_limits(&self, url: &str) -> Result<ListVerdict, ModelError> {
        let target = &self.settings.target;
        let list = match self.get(&format!("{url}models")).await {
            Ok((200..=299, body)) => serde_json::from_str::<Value>(&body).unwrap_or_default(),
            Ok((status, body)) if denies(status, &body, &target.model) => return Ok(ListVerdict::Denied),
            Ok(_) => Value::Null,
            Err(error) if error.is_connect() => {
                return Err(ModelError::Unavailable(format!("it cannot be reached: {}", with_causes(&error))));
            }
            Err(_) => return Ok(ListVerdict::Fine),
        };
        // Some servers send the list without a wrapping object.
        let entries = list.get("data").unwrap_or(&list).as_array().cloned().unwrap_or_default();
        let name = |entry: &Value| entry.get("id").and_then(Value::as_str).map(str::to_owned);
        let own = entries.iter().find(|entry| name(entry).as_ref() == Some(&target.model));
        // A server that lists a single model accepts any name, so take the limits of that model.
        let its = own.or_else(|| entries.first().filter(|_| entries.len() == 1));
        let (context, output) = its.map(limits_in).unwrap_or_default();
        self.capacity.listed(context, output);
        if its.is_some() && self.capacity.context().is_none() && !self.settings.price.is_free() {
            self.look_elsewhere(url).await;
        }
        let names: Vec<String> = entries.iter().filter_map(name).collect();
        Ok(if names.is_empty() || own.is_some() { ListVerdict::Fine } else { ListVerdict::Lacks(names) })
    }

    /// Looks for the context length at other paths, because some servers' lists lack it: LM Studio (`/api/v0/models`),
    /// llama.cpp (`/props`), TGI (`/info`), Ollama (`/api/ps`).
    async fn look_elsewhere(&self, url: &str) {
        let root = url.trim_end_matches('/').trim_end_matches("/v1");
        for path in ["api/v0/models", "props", "info", "api/ps"] {
            let asked = tokio::time::timeout(ELSEWHERE, self.get(&format!("{root}/{path}"))).await;
            let Ok(Ok((200..=299, body))) = asked else { continue };
            let said: Value = serde_json::from_str(&body).unwrap_or_default();
            let entries = said.get("data").or_else(|| said.get("models")).and_then(Value::as_array);
            let is_own = |entry: &&Value| {
                ["id", "name", "model"].iter().any(|field| entry[*field] == self.settings.target.model.as_str())
            };
            let its = entries.map_or(Some(&said), |entries| entries.iter().find(is_own));
            let (context, _) = its.map(limits_in).unwrap_or_default();
            self.capacity.listed(context, None);
            if context.is_some() {
                return;
            }
        }
    }

    /// Sends a GET request; returns status and body.
    async fn get(&self, url: &str) -> reqwest::Result<(u16, String)> {
        let client = reqwest::Client::builder().connect_timeout(TIMEOUT).build()?;
        let mut request = client.get(url);
        if let Some(key) = &self.settings.key {
            request = request.bearer_auth(key);
        }
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        Ok((status, answer.text().await?))
    }

    /// Makes the test call, a short question. Returns an error only if the server denies the call: after a transient
    /// failure, the calls of the run are retried anyway.
    async fn ask_once(&self) -> Result<ProbeCost, QueryFailed> {
        let request = Request { messages: vec![Message::new(Role::User, SHORT_QUESTION)], ..Request::default() };
        let target = &self.settings.target;
        let chat = wire::request(target, &request, false);
        let (options, _) = wire::options(target, &request);
        let options = options.with_max_tokens(REPLY);
        let answer = self.ask(&request, chat, &options, None).await;
        let mut answer = answer.map(ClassifiedReply::into_reply);
        if let Ok(reply) = &mut answer
            && told_nothing(&reply.usage)
        {
            estimate(&request, reply);
        }
        match self.priced(answer) {
            Ok(reply) => Ok(ProbeCost { usage: reply.usage, cost: reply.cost }),
            Err(failed) if matches!(failed.error, ModelError::Denied(_)) => Err(failed),
            Err(QueryFailed { usage, cost, .. }) => Ok(ProbeCost { usage, cost }),
        }
    }
}

/// Checks that a model answers ([`Model::probe`]), before anything is built or run. Returns the cost of a test call.
///
/// # Errors
/// Kind `Provider` if the model cannot be reached, `Model` if the provider denies the key or the model.
pub async fn reach(model: &dyn Model) -> Result<ProbeCost> {
    model.probe().await.map_err(|QueryFailed { error, usage, cost, .. }| {
        let (kind, hint) = match &error {
            ModelError::Denied(_) => (
                FailureKind::Model,
                "check the model's name and the key: `autoexperiment doctor` shows the variable with each provider's \
                 key, and `AUTOEXPERIMENT_API_KEY` has the key for a `--base-url` server. Then give the same command \
                 again; nothing was run",
            ),
            _ => (
                FailureKind::Provider,
                "start its server or correct `--base-url`, then give the same command again; nothing was run",
            ),
        };
        let cost = ProbeCost { usage, cost }.describe().map(|told| format!("; {told}")).unwrap_or_default();
        Error::new(kind, format!("`{}` cannot be asked: {error}{cost}", model.name())).hint(hint)
    })
}

/// Whether the answer to a request for the model list says that the key is not accepted or that the model does not
/// exist.
fn denies(status: u16, body: &str, model: &str) -> bool {
    let lower = body.to_lowercase();
    match status {
        401..=403 => true,
        404 => lower.contains(&model.to_lowercase()) || NO_MODEL.iter().any(|words| lower.contains(words)),
        _ => says_no_access(&lower),
    }
}

/// Returns host and port of an HTTP address.
fn address(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '#']).next()?;
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if scheme == "https" { 443 } else { 80 };
    Some(if has_port { host.to_owned() } else { format!("{host}:{port}") })
}
