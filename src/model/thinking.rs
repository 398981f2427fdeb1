//! Converts the reasoning effort or budget to each provider's terms.

use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ReasoningEffort};
use serde_json::{Value, json};

use super::features::ModelTarget;
use super::{Effort, Sampling};

/// Minimum thinking budget, in tokens, that Anthropic accepts.
const LEAST_OF_ANTHROPIC: u32 = 1024;

/// Returns how many tokens of thinking a reply may have in addition to its requested maximum length. Not used for
/// external agents, whose requested maximum already includes thinking.
pub(super) fn beyond(target: &ModelTarget, sampling: &Sampling) -> u32 {
    let takes_budget = !target.own_server && target.features.reasoning;
    let budget = sampling.reasoning_tokens.filter(|_| takes_budget).unwrap_or(0);
    if target.kind == AdapterKind::Gemini && !takes_levels(&target.model) {
        return budget.max(sampling.effort.map_or(0, |effort| of_gemini(&of_genai(effort))));
    }
    if target.kind != AdapterKind::Anthropic {
        return budget;
    }
    let budget = if budget > 0 { budget.max(LEAST_OF_ANTHROPIC) } else { 0 };
    budget.saturating_add(sampling.effort.map_or(0, |effort| of_anthropic(&of_genai(effort))))
}

/// Tokens of a reply's maximum length that are kept for text when the thinking budget is reduced. If this is more than
/// half of the maximum length, half of the maximum length is kept instead.
const LEAST_TEXT: u32 = 256;

/// If the thinking budget, which is given or derived from an effort, is not less than the reply's maximum length,
/// reduces the budget so that [`LEAST_TEXT`] tokens are left for text. Removes the budget of an Anthropic model if it
/// would fall below [`LEAST_OF_ANTHROPIC`].
pub(super) fn fit(target: &ModelTarget, options: &mut ChatOptions) {
    let (Some(most), Some(effort)) = (options.max_tokens, &options.reasoning_effort) else { return };
    let budget = match (target.kind, effort) {
        (AdapterKind::Anthropic | AdapterKind::Gemini, ReasoningEffort::Budget(budget)) => *budget,
        (AdapterKind::Anthropic, effort) if !takes_effort(&target.model) => of_anthropic(effort),
        (AdapterKind::Gemini, effort) if !takes_levels(&target.model) => of_gemini(effort),
        _ => return,
    };
    let room = most.saturating_sub(LEAST_TEXT.min(most / 2));
    if budget < most {
        return;
    }
    let is_too_short = target.kind == AdapterKind::Anthropic && room < LEAST_OF_ANTHROPIC;
    options.reasoning_effort = (!is_too_short).then_some(ReasoningEffort::Budget(room));
}

/// Returns the object that `genai` writes as Gemini's `thinkingConfig` for an effort.
pub(super) fn gemini_config(model: &str, effort: &ReasoningEffort) -> Option<Value> {
    if takes_levels(model) {
        let level = match effort {
            ReasoningEffort::Zero | ReasoningEffort::Budget(_) => return None,
            ReasoningEffort::Minimal => "MINIMAL",
            ReasoningEffort::Low => "LOW",
            ReasoningEffort::Medium => "MEDIUM",
            ReasoningEffort::High | ReasoningEffort::XHigh | ReasoningEffort::Max => "HIGH",
        };
        return Some(json!({ "thinkingLevel": level }));
    }
    (!matches!(effort, ReasoningEffort::Zero)).then(|| json!({ "thinkingBudget": of_gemini(effort) }))
}

/// Whether an Anthropic model takes an effort level, by the rules of `genai`. For other models, `genai` converts an
/// effort to a token budget.
pub(super) fn takes_effort(model: &str) -> bool {
    if always_reasons(model) {
        return true;
    }
    // A proxy may put a prefix before the provider's name of the model.
    let Some((prefix, name)) = model.find("claude-").map(|start| model.split_at(start)) else { return false };
    let mut parts = name.split('-').skip(1);
    let family = parts.next();
    // A longer number is a date, not a version.
    let mut number = || parts.next().filter(|part| part.len() <= 2).and_then(|part| part.parse::<u32>().ok());
    let Some(major) = number() else { return false };
    let version = (major, number().unwrap_or(0));
    match family {
        Some("opus") => version >= (4, 5),
        Some("sonnet") => version == (4, 6) || major == 5,
        Some("haiku") => prefix.is_empty() && version >= (5, 0),
        _ => false,
    }
}

/// Whether an Anthropic model always reasons, so that its reasoning cannot be turned off.
fn always_reasons(model: &str) -> bool {
    ["fable", "mythos"].iter().any(|name| model.contains(name))
}

/// Whether the effort `none` turns the model's reasoning off. `false` if this program does not know it. Sources: the
/// model pages of the providers' documentation.
pub(super) fn takes_none(target: &ModelTarget) -> bool {
    let model = target.model.as_str();
    match target.kind {
        _ if target.own_server || !target.features.reasoning => false,
        AdapterKind::OpenAI | AdapterKind::OpenAIResp => {
            let version = model.strip_prefix("gpt-").and_then(|rest| rest.split('-').next()).unwrap_or_default();
            let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
            let number = |text: &str| text.parse::<u32>().unwrap_or(0);
            let is_special = ["-chat", "-codex", "-pro", "-deep-research"].iter().any(|part| model.contains(part));
            (number(major), number(minor)) >= (5, 1) && !is_special
        }
        AdapterKind::Anthropic => !always_reasons(model),
        AdapterKind::Gemini => effort(target, 0).is_some(),
        _ => false,
    }
}

/// Whether a Gemini model takes a thinking level instead of a token budget.
fn takes_levels(model: &str) -> bool {
    ["gemini-3", "gemma-4"].iter().any(|name| model.contains(name))
}

/// Returns the token budget that `genai` derives from an effort, for Gemini models without thinking levels.
const fn of_gemini(effort: &ReasoningEffort) -> u32 {
    match effort {
        ReasoningEffort::Low | ReasoningEffort::Minimal => 1000,
        ReasoningEffort::Medium => 8000,
        ReasoningEffort::High | ReasoningEffort::Max | ReasoningEffort::XHigh => 24_000,
        ReasoningEffort::Budget(budget) => *budget,
        ReasoningEffort::Zero => 0,
    }
}

/// Converts an effort to `genai`'s type; `genai` knows which levels each of Anthropic's and Gemini's models accepts.
pub(super) const fn of_genai(effort: Effort) -> ReasoningEffort {
    match effort {
        Effort::None => ReasoningEffort::Zero,
        Effort::Minimal => ReasoningEffort::Minimal,
        Effort::Low => ReasoningEffort::Low,
        Effort::Medium => ReasoningEffort::Medium,
        Effort::High => ReasoningEffort::High,
        Effort::XHigh => ReasoningEffort::XHigh,
        Effort::Max => ReasoningEffort::Max,
    }
}

/// Returns the token budget that `genai` derives from an effort, for Anthropic's models without effort levels. The
/// bound on the whole reply must be greater than this budget.
const fn of_anthropic(effort: &ReasoningEffort) -> u32 {
    match effort {
        ReasoningEffort::Zero => 0,
        ReasoningEffort::Minimal | ReasoningEffort::Low => 1024,
        ReasoningEffort::Medium => 8000,
        ReasoningEffort::High | ReasoningEffort::XHigh | ReasoningEffort::Max => 24_000,
        ReasoningEffort::Budget(budget) => *budget,
    }
}

/// Converts a token budget to the setting that the provider takes. 0 means as little reasoning as possible, if the
/// model can reduce it or switch it off. Models that always reason, or whose settings are unknown, keep their default.
pub(super) fn effort(target: &ModelTarget, budget: u32) -> Option<ReasoningEffort> {
    let model = target.model.as_str();
    let kind = if target.is_openai() { AdapterKind::OpenAI } else { target.kind };
    match (kind, budget) {
        (AdapterKind::OpenAI, 0) => {
            let sizes = ["gpt-5", "gpt-5-mini", "gpt-5-nano"];
            let is_dated = |rest: &str| rest.is_empty() || rest.starts_with("-20");
            let is_known = sizes.iter().any(|size| model.strip_prefix(size).is_some_and(is_dated));
            is_known.then_some(ReasoningEffort::Minimal)
        }
        (AdapterKind::OpenAI, 1..=2048) => Some(ReasoningEffort::Low),
        (AdapterKind::OpenAI, 2049..=8192) => Some(ReasoningEffort::Medium),
        (AdapterKind::OpenAI, _) => Some(ReasoningEffort::High),
        (AdapterKind::Gemini, 0) => model.starts_with("gemini-2.5-flash").then_some(ReasoningEffort::Budget(0)),
        (_, 0) => None,
        (AdapterKind::Anthropic, tokens) => Some(ReasoningEffort::Budget(tokens.max(LEAST_OF_ANTHROPIC))),
        (_, tokens) => Some(ReasoningEffort::Budget(tokens)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::features::Description;
    use super::*;

    #[test]
    fn a_thinking_budget_becomes_an_effort_level_that_the_openai_model_accepts() {
        let target = |model: &str| ModelTarget::new(AdapterKind::OpenAI, model, false, &Description::default());
        let told = |model: &str, budget| effort(&target(model), budget);
        assert!(matches!(told("o3", 512), Some(ReasoningEffort::Low)));
        assert!(matches!(told("gpt-5-mini", 4096), Some(ReasoningEffort::Medium)));
        assert!(matches!(told("gpt-5", 32_000), Some(ReasoningEffort::High)));
        for (model, has_minimal) in
            [("gpt-5-mini-2025-08-07", true), ("gpt-5", true), ("gpt-5.1", false), ("o3", false)]
        {
            assert_eq!(matches!(told(model, 0), Some(ReasoningEffort::Minimal)), has_minimal, "{model}");
        }
    }

    #[test]
    fn only_models_whose_reasoning_can_be_turned_off_take_the_effort_none() {
        for (kind, model, takes) in [
            (AdapterKind::OpenAI, "gpt-5.1", true),
            (AdapterKind::OpenAI, "gpt-5.2-2025-12-11", true),
            (AdapterKind::OpenAI, "gpt-6-astra", true),
            (AdapterKind::OpenAI, "gpt-5-mini", false),
            (AdapterKind::OpenAI, "gpt-5.1-codex-max", false),
            (AdapterKind::OpenAI, "gpt-5.2-pro", false),
            (AdapterKind::OpenAI, "o3", false),
            (AdapterKind::OpenAI, "gpt-4o", false),
            (AdapterKind::Anthropic, "claude-sonnet-4-5", true),
            (AdapterKind::Anthropic, "claude-fable-5", false),
            (AdapterKind::Gemini, "gemini-2.5-flash", true),
            (AdapterKind::Gemini, "gemini-2.5-pro", false),
            (AdapterKind::Gemini, "gemini-3-pro-preview", false),
        ] {
            let target = ModelTarget::new(kind, model, false, &Description::default());
            assert_eq!(takes_none(&target), takes, "{model}");
        }
        let own = ModelTarget::new(AdapterKind::OpenAI, "gpt-5.1", true, &"reasoning=true".parse().unwrap());
        assert!(!takes_none(&own), "the models of other servers are not known");
    }
}
