//! Options that choose a model, how to reach it, and its price.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::agent::AgentSpec;
use crate::error::{Error, Result};
use crate::model::Description;
use crate::run::{ModelChoice, VerifierSpec};

/// A model and how to reach it.
#[derive(Clone, clap::Args)]
pub(super) struct ModelOptions {
    /// Model: `openai:NAME`, `anthropic:NAME`, `gemini:NAME`, NAME with --base-url, `scripted:FILE` or `replay:FILE`.
    #[arg(short, long, help_heading = "Agents and models")]
    model: Option<String>,
    /// Address of an OpenAI-compatible server, such as `http://127.0.0.1:8080/v1`.
    #[arg(long, value_name = "URL", help_heading = "Agents and models")]
    base_url: Option<String>,
    /// Price in dollars per million tokens read and per million written, if it is not known. Two more numbers are the
    /// prices of reading from and writing to the provider's cache; without them, cached tokens count in full.
    #[arg(long, value_name = "IN,OUT[,CACHED,CACHE_WRITTEN]", value_parser = parse_price, help_heading = "Agents and models")]
    price: Option<GivenPrice>,
    /// Features of the model, if they are unknown or known wrongly:
    /// `api=responses,images=true,reasoning=true,output=32000,context=200000,price=1:8`, or a TOML file with such
    /// lines.
    #[arg(long, value_name = "NAME=VALUE,...|FILE", help_heading = "Agents and models")]
    describe: Option<Description>,
    /// Keep replies in this folder and reuse them: the same request, by the attempt of the same number, in a run with
    /// the same --seed, is not paid twice. Verifiers do not use it.
    #[arg(long, value_name = "DIR", help_heading = "Agents and models")]
    model_cache: Option<PathBuf>,
    /// Record all model calls to a file that `replay:FILE` plays back.
    #[arg(long, value_name = "FILE", help_heading = "Agents and models")]
    record: Option<PathBuf>,
    /// Time limit per request to the model, such as `10m`, or in seconds.
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Agents and models")]
    request_timeout: Option<f64>,
    /// Maximum retries per request if the provider fails or limits the rate. The waits between them double.
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Agents and models")]
    retries: usize,
}

impl ModelOptions {
    /// Whether `--model` was given.
    pub const fn is_given(&self) -> bool {
        self.model.is_some()
    }

    /// Returns the options as settings of a model that are stored with a run; `None` without `--model`.
    pub fn choice(&self) -> Result<Option<ModelChoice>> {
        let Some(spec) = &self.model else { return Ok(None) };
        Ok(Some(ModelChoice {
            spec: absolute_spec(spec)?,
            base_url: self.base_url.clone(),
            price: self.price.map(|price| price.tokens),
            cache_price: self.price.and_then(|price| price.cache),
            description: self.describe.clone(),
            cache: self.model_cache.as_deref().map(absolute).transpose()?,
            record: self.record.as_deref().map(absolute).transpose()?,
            request_timeout: self.request_timeout,
            retries: self.retries,
        }))
    }
}

impl ModelOptions {
    /// Refuses `--base-url` without `--model`. Otherwise, the stored settings of the run would name a server to which
    /// it never sends a request.
    pub(super) fn refuse_server_alone(&self) -> Result<()> {
        if self.base_url.is_none() || self.model.is_some() {
            return Ok(());
        }
        Err(Error::usage("`--base-url` is given without `--model`")
            .hint("name the server's model with `--model NAME`; a verifier `model:OTHER` then uses the same server"))
    }

    /// Same as [`Self::choice`], but if only a server is given, returns a choice with an empty model name. This is for
    /// commands in which another option may name the model, such as `--verifier model:NAME`.
    pub fn server(&self) -> Result<Option<ModelChoice>> {
        let named =
            Self { model: self.model.clone().or_else(|| self.base_url.is_some().then(String::new)), ..self.clone() };
        named.choice()
    }
}

/// Makes a path absolute, because a run may be resumed from another folder.
fn absolute(path: &Path) -> Result<PathBuf> {
    if path.as_os_str().is_empty() {
        return Err(
            Error::usage("no file is named").hint("write its name after the colon: `scripted:FILE` or `replay:FILE`")
        );
    }
    std::path::absolute(path).map_err(|error| Error::io("resolve", path, error))
}

/// Makes the path in `scripted:FILE` or `replay:FILE` absolute.
fn absolute_spec(spec: &str) -> Result<String> {
    for kind in ["scripted:", "replay:"] {
        if let Some(file) = spec.strip_prefix(kind) {
            return Ok(format!("{kind}{}", absolute(Path::new(file))?.display()));
        }
    }
    Ok(spec.to_owned())
}

/// Parses a verifier as it is stored with a run, with absolute paths.
pub fn verifier_spec(text: &str) -> Result<VerifierSpec> {
    text.parse::<VerifierSpec>()?.with_model(&absolute_spec)
}

/// Makes the paths of an agent absolute, because a run may be resumed from another folder. An external agent's folder
/// that is given by its name alone is looked up in the suite.
pub fn located(agent: AgentSpec, suite: &Path) -> Result<AgentSpec> {
    Ok(match agent {
        AgentSpec::Scripted(file) => AgentSpec::Scripted(absolute(&file)?),
        AgentSpec::Replies(file) => AgentSpec::Replies(absolute(&file)?),
        AgentSpec::Function(function) => AgentSpec::Function(function.in_file(absolute)?),
        AgentSpec::External(program) => AgentSpec::External(program.located(&suite.join("agents"), absolute)?),
        // Name all agents without a path instead of using `_`: if a new kind of agent is added, the compiler reports it
        // here, and its path cannot be forgotten.
        other @ (AgentSpec::React(_)
        | AgentSpec::Fixed(_)
        | AgentSpec::MlAgent(_)
        | AgentSpec::Mutant(_)
        | AgentSpec::Single
        | AgentSpec::Gold
        | AgentSpec::Noop
        | AgentSpec::Forger
        | AgentSpec::Random
        | AgentSpec::Copycat) => other,
    })
}

/// The argument of `--price`, in dollars per million tokens.
#[derive(Debug, Clone, Copy)]
pub struct GivenPrice {
    /// Prices of tokens read and written.
    pub tokens: (f64, f64),
    /// Prices of tokens read from the cache and written to it.
    pub cache: Option<(f64, f64)>,
}

pub(super) fn parse_price(text: &str) -> Result<GivenPrice, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0);
    let numbers: Option<Vec<f64>> = text.split(',').map(number).collect();
    match numbers.as_deref() {
        Some(&[read, written]) => Ok(GivenPrice { tokens: (read, written), cache: None }),
        Some(&[read, written, cached, cache_written]) => {
            Ok(GivenPrice { tokens: (read, written), cache: Some((cached, cache_written)) })
        }
        _ => Err(format!(
            "`{text}` is not a price: give dollars for a million tokens read and written, such as `0.15,0.60`"
        )),
    }
}

pub(super) fn parse_time(text: &str) -> Result<f64, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return if seconds > 0.0 && seconds.is_finite() { Ok(seconds) } else { Err("must be more than 0".to_owned()) };
    }
    let parsed: jiff::SignedDuration =
        text.parse().map_err(|_| format!("`{text}` is not a time: give seconds, or a time as `30m` or `1h30m`"))?;
    match Duration::try_from(parsed) {
        Ok(parsed) if !parsed.is_zero() => Ok(parsed.as_secs_f64()),
        _ => Err("must be more than 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_agents_are_stored_with_absolute_paths() {
        let here = std::env::current_dir().unwrap();
        for (agent, stored) in [
            (AgentSpec::Replies("a.jsonl".into()), AgentSpec::Replies(here.join("a.jsonl"))),
            (AgentSpec::Scripted("a.jsonl".into()), AgentSpec::Scripted(here.join("a.jsonl"))),
            (AgentSpec::Gold, AgentSpec::Gold),
        ] {
            assert_eq!(located(agent, Path::new("suite")).unwrap(), stored);
        }
        assert!(located(AgentSpec::Replies(PathBuf::new()), Path::new("suite")).is_err());
    }
}
