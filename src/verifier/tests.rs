use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::model::{ModelError, QueryFailed, Quote, Reply, Request};
use crate::verifier::vote::{Vote, VoteOutcome, Votes};

/// Stores no votes and allows every call.
pub(super) struct NoVotes;

impl Votes for NoVotes {
    fn earlier(&self, _: u32, _: u32) -> Option<Vote> {
        None
    }

    fn allow(&self, _: &Quote) -> Result<Option<u32>> {
        Ok(None)
    }

    fn keep(&self, _: &Vote) -> Result<()> {
        Ok(())
    }
}

fn candidate(attempt: u32, value: Option<f64>, runs: Option<bool>, pass: bool) -> Candidate {
    let answer = value.map(|value| json!({"Experiment 1": {"loss": value}}));
    Candidate {
        attempt,
        patch: format!("+return {value:?}"),
        answer: answer.and_then(|answer| answer.as_object().cloned()).unwrap_or_default(),
        runs,
        pass,
    }
}

fn question() -> Question {
    Question {
        sample: "x_1".to_owned(),
        task: "Write `a.py::f`.".to_owned(),
        answers: vec![("Experiment 1".to_owned(), crate::score::Tolerance::default())],
        ..Question::default()
    }
}

async fn chosen(name: &str, candidates: &[Candidate]) -> VerifierChoice {
    open(&name.parse().unwrap(), &|_| Ok(None), 1).unwrap().choose(&question(), candidates, &NoVotes).await.unwrap()
}

#[tokio::test]
async fn the_majority_is_the_result_that_most_agree_on_within_tolerance() {
    let candidates = [
        candidate(0, Some(9.0), None, false),
        candidate(1, Some(1.0), None, false),
        candidate(2, None, None, false),
        candidate(3, Some(1.03), None, false),
        candidate(4, Some(1.04), None, false),
    ];
    let choice = chosen("majority", &candidates).await;
    assert_eq!((choice.chosen, choice.reason.as_str()), (Some(1), "3 of 5 agree"));
    assert_eq!(chosen("majority", &candidates[..2]).await.chosen, Some(0));
    assert_eq!(chosen("majority", &candidates[2..3]).await.reason, "no attempt reported every experiment");
}

#[tokio::test]
async fn the_majority_counts_numbers_in_quotes() {
    let quoted = |attempt, text: &str| Candidate {
        answer: serde_json::Map::from_iter([("Experiment 1".to_owned(), json!({ "loss": text }))]),
        ..candidate(attempt, None, None, true)
    };
    let candidates = [candidate(0, Some(9.0), None, false), quoted(1, "1.0"), quoted(2, "1.01")];
    assert_eq!(chosen("majority", &candidates).await.chosen, Some(1));
}

#[tokio::test]
async fn execution_drops_crashing_candidates_before_the_vote() {
    let candidates = [
        candidate(0, Some(9.0), Some(false), false),
        candidate(1, Some(9.0), Some(false), false),
        candidate(2, Some(1.0), Some(true), true),
    ];
    assert_eq!(chosen("majority", &candidates).await.chosen, Some(0));
    let choice = chosen("execution", &candidates).await;
    assert_eq!((choice.chosen, choice.reason.as_str()), (Some(2), "1 of 3 run; no two attempts agree"));
    assert_eq!(chosen("execution", &candidates[..2]).await.chosen, Some(0));
}

#[tokio::test]
async fn the_verifier_oracle_picks_a_passing_candidate_and_the_verifier_none_picks_the_first() {
    let candidates = [candidate(0, None, None, false), candidate(1, None, None, true)];
    assert_eq!(chosen("oracle", &candidates).await.chosen, Some(1));
    assert_eq!(chosen("none", &candidates).await.chosen, Some(0));
}

#[tokio::test]
async fn a_verifiers_model_votes_once_per_candidate_order_and_repeats_an_unreadable_vote() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("votes.jsonl");
    // The model is shown the candidates in two orders. In the first order, its first reply is unreadable, so it is
    // asked again, and the second reply names A. In the second order, its first reply names B, so it is not asked
    // again.
    let lines = [r#"{"text": "the best is Z", "cost": 0.5}"#, r#"{"text": "{\"choice\": \"A\"}", "cost": 0.25}"#];
    let more = [r#"{"text": "{\"choice\": \"B\"}"}"#, r#"{"text": ""}"#];
    std::fs::write(&script, [lines, more].concat().join("\n")).unwrap();
    let model = crate::model::open(&format!("scripted:{}", script.display()), &crate::model::ModelAccess::default());
    let model = model.unwrap();
    let verifier = open(&VerifierSpec::Model(None), &|_| Ok(Some(model.clone())), 2).unwrap();
    let candidates = [candidate(0, Some(1.0), None, false), candidate(1, Some(2.0), None, false)];
    let choice = verifier.choose(&question(), &candidates, &NoVotes).await.unwrap();
    assert!((choice.cost - 0.75).abs() < 1e-12);
    // The second order is the reverse of the first, so B in the second order is the candidate that is A in the first.
    assert!(choice.chosen.is_some() && choice.reason.starts_with("2 of 2 votes"), "{choice:?}");
    // The verifier's name contains the model and the number of orders in which the candidates are shown. So choices
    // made with another model or another number of orders have another name.
    assert!(verifier.name().starts_with("model:") && verifier.name().ends_with("*2"), "{}", verifier.name());
    // Identical candidates need no vote and cost nothing.
    let same = [candidates[0].clone(), Candidate { attempt: 1, ..candidates[0].clone() }];
    let choice = verifier.choose(&question(), &same, &NoVotes).await.unwrap();
    assert_eq!((choice.chosen, choice.cost), (Some(0), 0.0));
}

#[test]
fn missing_models_are_usage_errors() {
    for name in ["model", "execution+model", "model:x"] {
        let Err(error) = open(&name.parse().unwrap(), &|_| Ok(None), 1) else { panic!("{name} was accepted") };
        assert_eq!(error.kind, crate::error::FailureKind::Usage);
    }
}

/// A model that gives these replies one after another, then fails.
struct RepliesInOrder(Vec<String>);

#[async_trait]
impl Model for RepliesInOrder {
    fn name(&self) -> &'static str {
        "saying"
    }

    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
        let said = self.0.get(request.call as usize).cloned();
        let text = said.ok_or_else(|| ModelError::Exhausted("no more".to_owned()))?;
        Ok(Reply { text, cost: 0.5, ..Reply::default() })
    }
}

/// A model that fails with this error at one call and answers A at all others.
struct FailingAt(u32, ModelError);

#[async_trait]
impl Model for FailingAt {
    fn name(&self) -> &'static str {
        "failing"
    }

    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
        if request.call == self.0 {
            let error = self.1.clone();
            return Err(QueryFailed { error, usage: Usage::default(), unanswered: 0, cost: 0.25 });
        }
        Ok(Reply { text: "{\"choice\": \"A\"}".to_owned(), cost: 0.5, ..Reply::default() })
    }
}

/// Stores votes in memory.
#[derive(Default)]
struct VotesInMemory(std::sync::Mutex<Vec<Vote>>);

impl Votes for VotesInMemory {
    fn earlier(&self, _: u32, _: u32) -> Option<Vote> {
        None
    }

    fn allow(&self, _: &Quote) -> Result<Option<u32>> {
        Ok(None)
    }

    fn keep(&self, vote: &Vote) -> Result<()> {
        self.0.lock().unwrap().push(vote.clone());
        Ok(())
    }
}

#[tokio::test]
async fn a_refused_question_is_a_failed_vote_and_does_not_end_the_verifier() {
    let candidates = [candidate(0, Some(1.0), None, false), candidate(1, Some(2.0), None, false)];
    let choose = async |model: FailingAt, orders: u32| {
        let (model, kept): (Arc<dyn Model>, VotesInMemory) = (Arc::new(model), VotesInMemory::default());
        let verifier = open(&VerifierSpec::Model(None), &|_| Ok(Some(model.clone())), orders).unwrap();
        let choice = verifier.choose(&question(), &candidates, &kept).await;
        (choice, kept.0.into_inner().unwrap())
    };
    for error in [ModelError::ContextLength("9000 tokens".into()), ModelError::Refused("a filter".into())] {
        let said = error.to_string();
        // The model is called once for each order of the candidates. With two orders, the first call fails. The vote of
        // the second call counts, and both calls are paid for.
        let (choice, kept) = choose(FailingAt(0, error.clone()), 2).await;
        let choice = choice.unwrap();
        assert!(choice.chosen.is_some() && choice.reason.starts_with("1 of 2 votes"), "{choice:?}");
        assert!((choice.cost - 0.75).abs() < 1e-12, "{choice:?}");
        assert_eq!((kept.len(), &kept[0].named, &kept[0].said), (2, &VoteOutcome::Failed, &said));
        // If the candidates are shown in only one order, the only call fails, so there is no vote. The reason of the
        // choice says so.
        let (choice, kept) = choose(FailingAt(0, error), 1).await;
        let choice = choice.unwrap();
        assert_eq!((choice.chosen, choice.reason), (Some(0), format!("no vote ({said}); chose the first attempt")));
        assert_eq!(kept.len(), 1);
    }
    // Errors that would also occur at every further question end the verifier's choice. The failed call is still
    // stored.
    for error in
        [ModelError::Denied("x".into()), ModelError::Unavailable("x".into()), ModelError::Exhausted("x".into())]
    {
        let (choice, kept) = choose(FailingAt(0, error), 2).await;
        assert_eq!(choice.unwrap_err().kind, crate::error::FailureKind::Model);
        assert_eq!((kept.len(), &kept[0].named), (1, &VoteOutcome::Failed));
    }
}

/// Generates valid and invalid replies of a verifier's model.
fn arbitrary_reply() -> impl Strategy<Value = String> {
    let letter = prop_oneof!["[A-F]", "[A-Za-z0-9]{0,3}", ".{0,3}"];
    prop_oneof![
        letter.prop_map(|letter| format!("I compare.\n{{\"choice\": \"{letter}\"}}")),
        "[{}\"\\\\:choice, A-D`\n]{0,60}",
        ".{0,40}",
        Just("x \"choice\": ".repeat(1 << 16)),
        Just(String::new()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn for_any_reply_a_verifier_chooses_a_candidate_or_fails(
        replies in vec(arbitrary_reply(), 0..10),
        values in vec((prop::option::of(-1.0..1.0), prop::option::of(any::<bool>()), any::<bool>()), 1..30),
        orders in 1u32..5,
        name in proptest::sample::select(vec!["model", "execution+model", "majority", "execution", "none", "oracle"]),
    ) {
        let candidates: Vec<Candidate> = (10..)
            .zip(values)
            .map(|(attempt, (value, runs, pass))| candidate(attempt, value, runs, pass))
            .collect();
        let model: Arc<dyn Model> = Arc::new(RepliesInOrder(replies.clone()));
        let verifier = open(&name.parse().unwrap(), &|_| Ok(Some(model.clone())), orders).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        match runtime.block_on(verifier.choose(&question(), &candidates, &NoVotes)) {
            Ok(choice) => {
                prop_assert!(choice.chosen.is_some_and(|place| place < candidates.len()), "{choice:?}");
                prop_assert!(choice.cost <= 0.5 * replies.len() as f64);
            }
            // The scripted model ran out of replies.
            Err(error) => prop_assert_eq!(error.kind, crate::error::FailureKind::Model),
        }
    }
}

/// Verifiers' choices are stored and compared between runs, so the prompt must not change by accident.
#[test]
fn the_prompt_for_masked_functions_equals_its_snapshot() {
    use crate::run::family::{Family, ScoringBasis};
    let suite = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees/tiny");
    let paper = crate::masked::MaskedReplication.load(&suite, "tiny", ScoringBasis::default()).unwrap();
    let question = paper.question(&crate::sample::masked("tiny_0,1")).unwrap();
    let (first, second) = (candidate(0, Some(1.0), None, false), candidate(1, Some(2.0), None, true));
    insta::assert_snapshot!("prompt_for_masked_functions", super::model::prompt(&question, &[&first, &second]));
}
