//! Tests of model names, keys and prices: invalid ones are refused before any money is spent.

use super::{ModelAccess, open_with};
use crate::error::{Error, FailureKind};
use crate::model::Usage;
use crate::model::price::Price;

fn refused(spec: &str, options: &ModelAccess, key: Option<&str>) -> Error {
    match open_with(spec, options, &|_| key.map(str::to_owned)) {
        Ok(model) => panic!("`{}` opened", model.name()),
        Err(error) => error,
    }
}

fn at_server() -> ModelAccess {
    ModelAccess { base_url: Some("http://127.0.0.1:1/v1".into()), price: Some((0.0, 0.0)), ..ModelAccess::default() }
}

#[test]
fn the_provider_follows_from_the_prefix_or_from_a_model_name_that_only_one_provider_uses() {
    let specs = ["openai:gpt-4o", "gpt-4o", "o3", "anthropic:claude-sonnet-4-5", "claude-sonnet-4-5", "gemini-2.5-pro"];
    for spec in specs {
        assert_eq!(open_with(spec, &ModelAccess::default(), &|_| Some("k".into())).unwrap().name(), spec);
    }
    for spec in ["llama-3", "qwen2.5:7b", "", ":", "openai:", "openai: ", "gemini:"] {
        let error = refused(spec, &ModelAccess::default(), Some("k"));
        assert_eq!(error.kind, FailureKind::Usage, "{spec}");
        assert!(error.hint.unwrap().contains("`openai:NAME`"), "{spec}");
    }
    for spec in ["llama-3", "qwen2.5:7b", "openai:x", "claude-x"] {
        assert_eq!(open_with(spec, &at_server(), &|_| None).unwrap().name(), spec);
    }
}

#[test]
fn a_missing_key_is_named_before_anything_is_spent() {
    for (spec, variable) in [
        ("openai:gpt-4o", "OPENAI_API_KEY"),
        ("claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini:gemini-2.5-pro", "GEMINI_API_KEY"),
    ] {
        for key in [None, Some(" ")] {
            let error = refused(spec, &ModelAccess::default(), key);
            assert_eq!(
                (error.kind, error.to_string()),
                (FailureKind::Model, format!("no key for `{spec}`: the variable `{variable}` is not set"))
            );
        }
    }
}

#[test]
fn a_providers_key_is_not_sent_to_another_server() {
    let asked = std::cell::RefCell::new(Vec::new());
    let variable = |name: &str| {
        asked.borrow_mut().push(name.to_owned());
        None
    };
    open_with("openai:gpt-4o", &at_server(), &variable).unwrap();
    assert_eq!(*asked.borrow(), ["AUTOEXPERIMENT_API_KEY"]);
}

#[test]
fn an_unknown_price_is_refused() {
    let error = refused("openai:no-such-model", &ModelAccess::default(), Some("k"));
    assert_eq!((error.kind, error.to_string()), (FailureKind::Model, "the price of `no-such-model` is unknown".into()));
    assert!(error.hint.unwrap().contains("--price"));
    let own_server = ModelAccess { price: None, ..at_server() };
    let error = refused("gpt-4o", &own_server, None);
    assert_eq!(error.to_string(), "the price of `gpt-4o` at `http://127.0.0.1:1/v1/` is unknown");
    for price in [(-1.0, 0.0), (0.0, f64::NAN), (f64::INFINITY, 0.0)] {
        assert_eq!(refused("m", &ModelAccess { price: Some(price), ..at_server() }, None).kind, FailureKind::Usage);
    }
}

#[test]
fn an_invalid_address_is_refused() {
    for url in ["localhost:8080", "ftp://host/v1", "http://", "http:///v1", "http://a b/"] {
        let error = refused("m", &ModelAccess { base_url: Some(url.into()), ..at_server() }, None);
        assert_eq!(
            (error.kind, error.to_string()),
            (FailureKind::Usage, format!("`--base-url {url}` is not an HTTP address"))
        );
    }
}

#[test]
fn an_address_that_may_contain_a_key_is_refused_without_showing_it() {
    for url in ["http://user:secretpw@host/v1", "http://secretpw@host/v1", "http://host/v1?api_key=secretpw"] {
        let error = refused("m", &ModelAccess { base_url: Some(url.into()), ..at_server() }, None);
        let hint = error.hint.clone().unwrap();
        assert!(error.kind == FailureKind::Usage && hint.contains("`AUTOEXPERIMENT_API_KEY`"), "{url}: {error}");
        assert!(!error.to_string().contains("secretpw") && !hint.contains("secretpw"), "{url}: {error}");
    }
    let path = ModelAccess { base_url: Some("http://host/a@b/v1".into()), ..at_server() };
    assert!(open_with("m", &path, &|_| None).is_ok());
}

#[test]
fn provider_options_are_refused_for_models_that_read_their_replies_from_a_file() {
    for spec in ["scripted:x.jsonl", "replay:x.jsonl"] {
        assert!(refused(spec, &at_server(), None).message.contains("`--base-url` cannot be used with"));
        let priced = ModelAccess { price: Some((1.0, 1.0)), ..ModelAccess::default() };
        assert!(refused(spec, &priced, None).message.contains("`--price` cannot be used with"));
    }
}

#[test]
fn list_prices_count_cached_tokens_at_their_own_rates() {
    // Claude Sonnet 4.5 costs, in dollars per million tokens: 3 for input, 0.30 for input read from the cache, 3.75 for
    // input written to the cache, and 15 for output.
    let price = Price::listed("anthropic", "claude-sonnet-4-5").unwrap();
    let usage = Usage { input: 100_000, cached: 60_000, cache_written: 30_000, output: 10_000, reasoning: 0 };
    let expected = (10_000.0 * 3.0 + 60_000.0 * 0.3 + 30_000.0 * 3.75 + 10_000.0 * 15.0) / 1e6;
    assert!((price.cost(&usage).unwrap() - expected).abs() < 1e-9, "{:?} against {expected}", price.cost(&usage));
    let odd = Usage { input: 10, cached: 50, cache_written: 50, ..usage };
    assert!(price.cost(&odd).unwrap() > 0.0, "parts that exceed the whole are cut, not an error");
}

#[test]
fn with_a_price_given_by_the_user_cached_tokens_cost_as_much_as_other_input_tokens() {
    let price = Price::given(2.0, 8.0, None).unwrap();
    let usage = Usage { input: 1_000_000, cached: 900_000, cache_written: 0, output: 500_000, reasoning: 400_000 };
    assert!((price.cost(&usage).unwrap() - 6.0).abs() < 1e-12);
}

#[test]
fn a_given_price_may_include_cache_prices() {
    let price = Price::given(2.0, 8.0, Some((0.2, 2.5))).unwrap();
    let usage = Usage { input: 1_000_000, cached: 600_000, cache_written: 300_000, output: 500_000, reasoning: 0 };
    let expected = 0.1 * 2.0 + 0.6 * 0.2 + 0.3 * 2.5 + 0.5 * 8.0;
    assert!((price.cost(&usage).unwrap() - expected).abs() < 1e-12, "{:?}", price.cost(&usage));
    assert!(Price::given(2.0, 8.0, Some((-1.0, 0.0))).is_err());
}
