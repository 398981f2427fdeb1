//! Model features: a table of known model names, and the user's description of any model.

use std::path::Path;

use genai::adapter::AdapterKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Features of a model, and the protocol to use with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Features {
    /// Whether to use OpenAI's Responses API instead of chat completions.
    pub(super) responses: bool,
    /// Whether the model accepts pictures.
    pub(super) images: bool,
    /// Whether the model can reason, with an adjustable effort or token budget.
    pub(super) reasoning: bool,
    /// Whether a request can limit the reply to one tool call.
    pub(super) one_call: bool,
    /// Whether the model accepts `temperature` and `top_p` while it reasons.
    pub(super) sampling: bool,
    /// Whether to ask the server for token ids and log-probabilities.
    pub(super) tokens: bool,
}

/// The model to call, with its features.
#[derive(Debug, Clone)]
pub(super) struct ModelTarget {
    /// The protocol, in `genai`'s type.
    pub(super) kind: AdapterKind,
    /// The provider's name of the model.
    pub(super) model: String,
    /// Whether the model runs on the user's server with OpenAI's protocol. Its features are then unknown unless the
    /// user describes them.
    pub(super) own_server: bool,
    /// The model's features.
    pub(super) features: Features,
}

/// The user's description of a model that this program does not know or has wrong data about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Which of OpenAI's two protocols to use, `chat` or `responses`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// Whether the model accepts pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Whether the model accepts a reasoning effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// Whether a request can limit the reply to one tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_call: Option<bool>,
    /// Whether the model accepts `temperature` and `top_p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<bool>,
    /// Whether to ask the server for token ids and log-probabilities, and store them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<bool>,
    /// Maximum tokens of a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u32>,
    /// Maximum tokens of prompt and reply together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// Dollars per million tokens: read, written, read from the cache, written to the cache. The last two may be left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Vec<f64>>,
}

/// OpenAI's two protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// Chat completions.
    Chat,
    /// The Responses API.
    Responses,
}

const FORM: &str = "give `name=value,...` or a TOML file of such lines, of `api` (`chat`, `responses`), `images`, \
                    `reasoning`, `one_call`, `sampling`, `tokens` (`true`, `false`), `output`, `context` (tokens) and `price` \
                    (`[read, written, cached, cache_written]`; on the command line with `:` between them)";

impl std::str::FromStr for Description {
    type Err = Error;

    /// Parses `name=value,...`. A text without an equals sign is the path of a TOML file, which is read instead.
    ///
    /// # Errors
    /// Kind `Usage` for an unknown form or an unreadable file, or, with file and line, for a malformed file.
    fn from_str(text: &str) -> Result<Self> {
        if text.contains('=') {
            let line = |pair: &str| match pair.split_once('=') {
                Some(("api", value)) => format!("api = {value:?}"),
                Some(("price", value)) => {
                    let prices = value.split(':').map(|price| price.parse::<f64>().unwrap_or(f64::NAN));
                    format!("price = {:?}", prices.collect::<Vec<_>>())
                }
                _ => pair.to_owned(),
            };
            let lines: Vec<String> = text.split(',').map(line).collect();
            let wrong = |error: toml::de::Error| {
                Error::usage(format!("`--describe {text}` is wrong: {}", error.message())).hint(FORM)
            };
            return toml::from_str::<Self>(&lines.join("\n")).map_err(wrong)?.checked();
        }
        let path = Path::new(text);
        let said = std::fs::read_to_string(path).map_err(|error| {
            Error::usage(format!("failed to read the description of the model, `--describe {text}`"))
                .because(error)
                .hint(FORM)
        })?;
        let wrong = |error: toml::de::Error| {
            let line = error.span().map(|span| crate::error::line_at(&said, span.start));
            Error::usage(error.message().to_owned()).at(path, line).hint(FORM)
        };
        toml::from_str::<Self>(&said).map_err(wrong)?.checked()
    }
}

impl Description {
    fn checked(self) -> Result<Self> {
        let is_right = self.price.as_ref().is_none_or(|price| {
            matches!(price.len(), 2 | 4) && price.iter().all(|dollars| dollars.is_finite() && *dollars >= 0.0)
        });
        if is_right { Ok(self) } else { Err(Error::usage("invalid `price` in the model description").hint(FORM)) }
    }
}

/// Features of OpenAI's models by the prefix of their names; the first match wins. The three flags: reasons, accepts
/// pictures, accepts `parallel_tool_calls`. Sources: the model pages of OpenAI's documentation.
const OPENAI: [(&str, bool, bool, bool); 12] = [
    ("gpt-5-chat", false, true, true),
    ("o1-mini", true, false, false),
    ("o3-mini", true, false, false),
    ("o1", true, true, false),
    ("o3", true, true, false),
    ("o4", true, true, false),
    ("codex-", true, true, true),
    ("gpt-3", false, false, true),
    ("gpt-4o", false, true, true),
    ("gpt-4.", false, true, true),
    ("gpt-4-turbo", false, true, true),
    ("gpt-4", false, false, true),
];

impl Features {
    /// Returns the known features of a provider's model, or of a model on the user's server.
    pub(super) fn known(kind: AdapterKind, model: &str, own_server: bool) -> Self {
        let plain =
            Self { responses: false, images: true, reasoning: true, one_call: true, sampling: true, tokens: false };
        match kind {
            AdapterKind::OpenAI if own_server => {
                let one_call = !["o1", "o3", "o4"].iter().any(|family| model.starts_with(family));
                Self { images: false, reasoning: false, one_call, ..plain }
            }
            AdapterKind::OpenAI => {
                let known = OPENAI.iter().find(|row| model.starts_with(row.0));
                let (reasoning, images, one_call) = match known {
                    Some((_, reasoning, images, one_call)) => (*reasoning, *images, *one_call),
                    // Models newer than the table are assumed to resemble its newest entries.
                    None => (generation(model) >= Some(5), true, true),
                };
                let responses = generation(model) >= Some(5) && !model.starts_with("gpt-5-chat")
                    || ["-codex", "-pro", "-deep-research"].iter().any(|part| model.contains(part))
                    || model.starts_with("codex-");
                Self { responses, images, reasoning, one_call, sampling: !reasoning, tokens: false }
            }
            AdapterKind::Anthropic => {
                let early =
                    ["claude-2", "claude-instant", "claude-3-5", "claude-3-haiku", "claude-3-opus", "claude-3-sonnet"];
                Self { reasoning: !early.iter().any(|name| model.starts_with(name)), ..plain }
            }
            AdapterKind::Gemini => {
                let early = ["gemini-1", "gemini-2.0"];
                Self { reasoning: !early.iter().any(|name| model.starts_with(name)), one_call: false, ..plain }
            }
            _ => plain,
        }
    }

    /// Returns the features with the changes that the user's description makes.
    pub(super) fn described(self, said: &Description) -> Self {
        Self {
            responses: said.api.map_or(self.responses, |api| api == Api::Responses),
            images: said.images.unwrap_or(self.images),
            reasoning: said.reasoning.unwrap_or(self.reasoning),
            one_call: said.one_call.unwrap_or(self.one_call),
            sampling: said.sampling.unwrap_or(self.sampling),
            tokens: said.tokens.unwrap_or(self.tokens),
        }
    }
}

/// Returns the major version in a GPT model's name: 5 for `gpt-5.1-mini`.
fn generation(model: &str) -> Option<u32> {
    let rest = model.strip_prefix("gpt-")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

impl ModelTarget {
    /// Determines protocol and features of a model from its name and the user's description.
    pub(super) fn new(kind: AdapterKind, model: &str, has_url: bool, said: &Description) -> Self {
        let own_server = has_url && kind == AdapterKind::OpenAI;
        let features = Features::known(kind, model, own_server).described(said);
        let kind = if features.responses && kind == AdapterKind::OpenAI { AdapterKind::OpenAIResp } else { kind };
        Self { kind, model: model.to_owned(), own_server, features }
    }

    /// Whether the model is called with one of OpenAI's protocols.
    pub(super) fn is_openai(&self) -> bool {
        matches!(self.kind, AdapterKind::OpenAI | AdapterKind::OpenAIResp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openai(model: &str) -> Features {
        Features::known(AdapterKind::OpenAI, model, false)
    }

    #[test]
    fn features_are_derived_from_model_names_and_unknown_new_models_get_the_newest_known_features() {
        for model in ["gpt-5", "gpt-5.1-codex-mini", "gpt-5-pro", "gpt-6-astra", "o3-pro", "codex-mini-latest"] {
            assert!(openai(model).responses && openai(model).reasoning, "{model}");
        }
        for model in ["gpt-4o-mini", "gpt-4.1", "o4-mini", "gpt-5-chat-latest"] {
            assert!(!openai(model).responses, "{model}");
        }
        assert!(!openai("gpt-4o").reasoning && openai("o3").reasoning && !openai("o3").one_call);
        assert!(!openai("gpt-4-0613").images && openai("gpt-4.1").images);
        assert!(!Features::known(AdapterKind::Anthropic, "claude-3-5-haiku-latest", false).reasoning);
        assert!(!Features::known(AdapterKind::OpenAI, "qwen", true).images);
    }

    #[test]
    fn models_are_described_in_a_line_or_file_and_invalid_descriptions_list_valid_fields() {
        let said: Description = "api=responses,images=true,output=32000,price=1:2:0.1:1.25".parse().unwrap();
        assert_eq!((said.api, said.images, said.output), (Some(Api::Responses), Some(true), Some(32_000)));
        assert_eq!(said.price.as_deref(), Some(&[1.0, 2.0, 0.1, 1.25][..]));
        let target = ModelTarget::new(AdapterKind::OpenAI, "next", true, &said);
        assert_eq!((target.kind, target.features.images), (AdapterKind::OpenAIResp, true));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.toml");
        std::fs::write(&path, "context = 200000\nreasoning = true\n").unwrap();
        let said: Description = path.to_str().unwrap().parse().unwrap();
        assert_eq!((said.context, said.reasoning), (Some(200_000), Some(true)));
        for wrong in ["api=mail", "eyes=true", "price=1", "price=a:b", "nowhere.toml"] {
            let error = wrong.parse::<Description>().unwrap_err();
            assert!(error.hint.as_deref().unwrap_or_default().contains("responses"), "{wrong}: {error}");
        }
    }
}
