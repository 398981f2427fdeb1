//! The verifier that a user names on the command line, as stored in `run.json`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The accepted spellings of a [`VerifierSpec`].
const VERIFIER_FORMS: &str = "`none`, `majority`, `execution`, `model`, `model:NAME`, `execution+model`, `oracle`";

/// A method of choosing one of the attempts at a sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum VerifierSpec {
    /// `none`: takes the first attempt.
    First,
    /// `majority`: takes the attempt whose results agree with those of most others.
    Majority,
    /// `execution`, `execution+...`: drops attempts whose code does not run; another verifier chooses among the rest,
    /// by default [`Self::Majority`].
    Execution(Option<Box<Self>>),
    /// `model`: asks the run's model. `model:NAME`: asks that model.
    Model(Option<String>),
    /// `oracle`: uses gold.
    Oracle,
}

impl VerifierSpec {
    /// Whether the verifier uses the run's own model.
    #[must_use]
    pub fn asks_own_model(&self) -> bool {
        match self {
            Self::Model(named) => named.is_none(),
            Self::Execution(Some(then)) => then.asks_own_model(),
            Self::First | Self::Majority | Self::Execution(None) | Self::Oracle => false,
        }
    }

    /// Replaces the name of the model, if the verifier names one.
    ///
    /// # Errors
    /// Returns the errors of `rename`.
    pub fn with_model(self, rename: &dyn Fn(&str) -> Result<String>) -> Result<Self> {
        Ok(match self {
            Self::Model(Some(named)) => Self::Model(Some(rename(&named)?)),
            Self::Execution(Some(then)) => Self::Execution(Some(Box::new(then.with_model(rename)?))),
            other => other,
        })
    }
}

impl FromStr for VerifierSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(then) = text.strip_prefix("execution+") {
            return Ok(Self::Execution(Some(Box::new(then.parse()?))));
        }
        if let Some(named) = text.strip_prefix("model:") {
            return Ok(Self::Model((!named.is_empty()).then(|| named.to_owned())));
        }
        match text {
            "none" => Ok(Self::First),
            "majority" => Ok(Self::Majority),
            "execution" => Ok(Self::Execution(None)),
            "model" => Ok(Self::Model(None)),
            "oracle" => Ok(Self::Oracle),
            _ => Err(Error::usage(format!("there is no verifier `{text}`"))
                .hint(format!("the verifiers are {VERIFIER_FORMS}"))),
        }
    }
}

impl fmt::Display for VerifierSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("none"),
            Self::Majority => f.write_str("majority"),
            Self::Execution(None) => f.write_str("execution"),
            Self::Execution(Some(then)) => write!(f, "execution+{then}"),
            Self::Model(None) => f.write_str("model"),
            Self::Model(Some(named)) => write!(f, "model:{named}"),
            Self::Oracle => f.write_str("oracle"),
        }
    }
}

crate::files::stored_as_text!(VerifierSpec);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_verifier_is_printed_as_it_was_parsed() {
        for text in [
            "none",
            "majority",
            "execution",
            "execution+majority",
            "execution+model",
            "execution+execution+oracle",
            "model",
            "model:openai:gpt-5-mini",
            "execution+model:qwen",
            "oracle",
        ] {
            let spec: VerifierSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
            let json = serde_json::to_string(&spec).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<VerifierSpec>(&json).unwrap(), spec);
        }
        for text in ["best", "execution+best", "execution+", ""] {
            assert!(text.parse::<VerifierSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_model_verifier_without_a_named_model_uses_the_runs_model_even_combined_with_execution() {
        let asks = |text: &str| text.parse::<VerifierSpec>().unwrap().asks_own_model();
        assert!(asks("model") && asks("execution+model"));
        assert!(!asks("model:x") && !asks("execution+model:x") && !asks("execution") && !asks("oracle"));
    }
}
