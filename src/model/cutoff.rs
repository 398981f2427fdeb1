//! Knowledge cutoffs of models: dates stated by the models' providers, and dates given by the user.

use crate::error::{Error, Result};
use crate::suite::PartialDate;

/// Knowledge cutoffs stated by the providers, by the prefix of a model's name. All other models' cutoffs are unknown.
const KNOWN: [(&str, &str); 5] = [
    ("gpt-3.5-turbo", "2021-09"),
    ("gpt-4o-mini", "2023-10"),
    ("gpt-4o", "2023-10"),
    ("gemini-2.5-pro", "2025-01"),
    ("gemini-2.5-flash", "2025-01"),
];

/// Cutoffs by model.
#[derive(Debug, Clone, Default)]
pub struct Cutoffs(Vec<(String, PartialDate)>);

impl Cutoffs {
    /// Returns the known cutoffs and the user's, each given as `MODEL=DATE`. The user's cutoffs take precedence.
    ///
    /// # Errors
    /// Kind `Usage` for a malformed entry.
    pub fn with(own: &[String]) -> Result<Self> {
        let mut all = Vec::new();
        for pair in own {
            let wrong = |hint: String| Error::usage(format!("`{}` is not a cutoff", pair.escape_debug())).hint(hint);
            let (model, date) = pair
                .rsplit_once('=')
                .ok_or_else(|| wrong("write MODEL=DATE, such as `openai:gpt-5-mini=2024-05`".to_owned()))?;
            all.push((model.to_owned(), date.parse().map_err(wrong)?));
        }
        Ok(Self(all))
    }

    /// Returns the knowledge cutoff of the model with this name, which may begin with the provider (`openai:NAME`).
    #[must_use]
    pub fn cutoff(&self, model: &str) -> Option<PartialDate> {
        let name = model.split_once(':').map_or(model, |(_, name)| name);
        let own = self.0.iter().find(|(it, _)| it == model || it == name).map(|(_, when)| *when);
        // Versions of a model have its name with a date appended, as in `gpt-4o-2024-08-06`; they get the model's
        // cutoff.
        let is = |known: &str| name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with("-20"));
        own.or_else(|| KNOWN.iter().find(|(known, _)| is(known)).and_then(|(_, date)| date.parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_cutoff_is_known_or_given_by_the_user_never_guessed() {
        let cutoffs = Cutoffs::with(&["gpt-4o=2024-01-31".to_owned(), "openai:new=2026-03".to_owned()]).unwrap();
        let of = |model: &str| cutoffs.cutoff(model).map(|when| when.to_string()).unwrap_or_default();
        assert_eq!(of("openai:gpt-4o"), "2024-01-31");
        assert_eq!(of("openai:gpt-4o-2024-08-06"), "2023-10");
        assert_eq!(of("gpt-4o-mini-2024-07-18"), "2023-10");
        assert_eq!((of("openai:new"), of("new")), ("2026-03".to_owned(), String::new()));
        assert_eq!(of("gpt-4o-audio-preview"), "");
        for wrong in ["gpt-4o", "gpt-4o=soon"] {
            assert!(Cutoffs::with(&[wrong.to_owned()]).is_err());
        }
        for (_, date) in KNOWN {
            assert!(date.parse::<PartialDate>().is_ok());
        }
    }
}
