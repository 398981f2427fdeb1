//! Lets a model compare the candidates' implementations and choose one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use minijinja::{Environment, Value, context};
use sha2::{Digest, Sha256};

use super::excerpt::excerpt;
use super::vote::{Vote, VoteOutcome, Votes};
use super::{Candidate, Question, Verifier, VerifierChoice};
use crate::agent::protocol::is_only_thoughts;
use crate::error::{Error, FailureKind, Result};
use crate::model::ask::Caller;
use crate::model::ledger::PayerLedger;
use crate::model::{self, Message, Model, ModelError, QueryFailed, Quote, Reply, Request, Role, Sampling};

const TEMPLATE: &str = include_str!("model.md");

/// Maximum characters of a candidate's diff in the prompt.
const LONGEST_PATCH: usize = 12_000;

/// Maximum stored characters of an invalid candidate name.
const LONGEST_NAME: usize = 40;

/// Number of times that the model is asked again after a reply that names no existing candidate.
const SECOND_ASKS: u32 = 1;

/// Verifier that asks a model.
pub(super) struct ByModel {
    model: Arc<dyn Model>,
    orders: u32,
}

impl ByModel {
    /// Creates a verifier that asks the model `orders` times, each time with the candidates in another order, because
    /// models tend to prefer the first. The candidate with most votes wins, the earliest attempt in a tie.
    pub(super) fn new(model: Arc<dyn Model>, orders: u32) -> Self {
        Self { model, orders: orders.max(1) }
    }

    /// Collects one vote: the index of the chosen candidate in `distinct`, and the reply's text. Returns `None` if no
    /// reply names an existing candidate, or if the model refuses the question. Votes of earlier sessions are reused.
    async fn vote(
        &self,
        question: &Question,
        distinct: &[&Candidate],
        order: u32,
        votes: &dyn Votes,
        spent: &mut VerifierChoice,
    ) -> Result<Option<(usize, String)>> {
        let places = shuffled(distinct.len(), &question.sample, order);
        let shown: Vec<&Candidate> = places.iter().map(|&place| distinct[place]).collect();
        let mut messages = vec![Message::new(Role::User, prompt(question, &shown))];
        // Reasoning models get more tokens, because their reasoning counts as output.
        let mut most = Some(if self.model.reasons() { 16_384 } else { 1024 });
        for ask in 0..=SECOND_ASKS {
            let vote = match votes.earlier(order, ask) {
                Some(vote) => vote,
                None => self.ask(&messages, most, &shown, order, ask, votes).await?,
            };
            spent.usage += vote.usage;
            spent.cost += vote.cost;
            let wrong = match &vote.named {
                VoteOutcome::Failed => {
                    spent.unreadable += 1;
                    spent.reason = vote.said;
                    return Ok(None);
                }
                VoteOutcome::Attempt(attempt) => {
                    let place = distinct.iter().position(|candidate| candidate.attempt == *attempt);
                    return Ok(place.map(|place| (place, vote.said)));
                }
                VoteOutcome::Unknown(label) => {
                    spent.unknown += 1;
                    format!("There is no implementation {label}.")
                }
                VoteOutcome::Nobody => {
                    spent.unreadable += 1;
                    "That names no implementation.".to_owned()
                }
            };
            // Servers do not say whether their models reason. If thoughts took all tokens, repeat the question without
            // the limit.
            if is_only_thoughts(&vote.said) {
                most = None;
                continue;
            }
            let last = label(shown.len() - 1);
            messages.push(Message::new(Role::Assistant, vote.said));
            messages.push(Message::new(
                Role::User,
                format!(
                    "{wrong} End with one line of JSON, {{\"choice\": \"X\"}}, where X is a letter from A to {last}."
                ),
            ));
        }
        Ok(None)
    }

    /// Asks the model and stores its vote. A question that is too long for the model or that the model refuses counts
    /// as a failed vote, because other questions may still be answered.
    async fn ask(
        &self,
        messages: &[Message],
        most: Option<u32>,
        shown: &[&Candidate],
        order: u32,
        ask: u32,
        votes: &dyn Votes,
    ) -> Result<Vote> {
        let mut request = Request {
            messages: messages.to_vec(),
            tools: Cow::default(),
            sampling: Sampling {
                // Reasoning models accept no other temperature than their default.
                temperature: (!self.model.reasons()).then_some(0.0),
                seed: Some(u64::from(order)),
                max_tokens: most,
                ..Sampling::default()
            },
            ..Request::default()
        };
        let asked = model::ask::ask(self.model.as_ref(), &mut request, &mut Poll { votes, shown, order, ask }).await?;
        match asked.outcome.map_err(|failed| failed.error) {
            Ok(_) | Err(ModelError::ContextLength(_) | ModelError::Refused(_) | ModelError::Rejected(_)) => {
                Ok(asked.kept)
            }
            Err(error @ (ModelError::Denied(_) | ModelError::Unavailable(_) | ModelError::Exhausted(_))) => {
                Err(Error::new(FailureKind::Model, format!("verifier: {error}")))
            }
        }
    }
}

/// One question about the candidates. Its implementation of [`Caller`] checks before the call that the cost is allowed,
/// and stores the reply as a vote.
struct Poll<'a> {
    votes: &'a dyn Votes,
    shown: &'a [&'a Candidate],
    order: u32,
    ask: u32,
}

impl Caller for Poll<'_> {
    type Refused = Error;
    type Kept = Vote;

    fn begin(&mut self, model: &dyn Model, request: &mut Request) -> Result<Quote> {
        request.call = self.order * (SECOND_ASKS + 1) + self.ask;
        let quote = model.quote(request);
        request.affordable = self.votes.allow(&quote)?;
        Ok(quote)
    }

    fn keep(&mut self, outcome: &std::result::Result<Reply, QueryFailed>, _waited: Duration) -> Result<Vote> {
        let (order, ask) = (self.order, self.ask);
        let vote = match outcome {
            Ok(reply) => {
                let named = choice(&reply.text, self.shown);
                Vote { order, ask, named, said: reply.text.clone(), usage: reply.usage, cost: reply.cost }
            }
            Err(failed) => {
                let said = failed.error.to_string();
                Vote { order, ask, named: VoteOutcome::Failed, said, usage: failed.usage, cost: failed.cost }
            }
        };
        self.votes.keep(&vote)?;
        Ok(vote)
    }

    fn tab(&self) -> Option<PayerLedger> {
        self.votes.tab()
    }

    fn unwritten(&mut self, error: io::Error) -> Error {
        Error::store("failed to write the run's ledger")
            .because(error)
            .hint("free some space, or change the folder's rights")
    }
}

#[async_trait]
impl Verifier for ByModel {
    /// Returns a name that contains the model and the number of orders. Choices are stored under this name and reused,
    /// so verifiers with other settings need other names.
    fn name(&self) -> String {
        format!("model:{}*{}", self.model.name(), self.orders)
    }

    fn model(&self) -> Option<&dyn Model> {
        Some(self.model.as_ref())
    }

    async fn choose(&self, question: &Question, candidates: &[Candidate], kept: &dyn Votes) -> Result<VerifierChoice> {
        // Show identical code only once, and at most 26 candidates, because their labels are letters.
        let mut distinct: Vec<&Candidate> = Vec::new();
        for candidate in candidates {
            if distinct.len() < 26 && !distinct.iter().any(|known| known.patch == candidate.patch) {
                distinct.push(candidate);
            }
        }
        let mut result = VerifierChoice::default();
        let place = |candidate: &Candidate| candidates.iter().position(|one| one.attempt == candidate.attempt);
        if let [only] = distinct.as_slice() {
            result.chosen = place(only);
            "all attempts are the same".clone_into(&mut result.reason);
            return Ok(result);
        }
        let mut votes: BTreeMap<usize, (u32, String)> = BTreeMap::new();
        for order in 0..self.orders {
            if let Some((chosen, said)) = self.vote(question, &distinct, order, kept, &mut result).await? {
                let entry = votes.entry(chosen).or_insert((0, said));
                entry.0 += 1;
            }
        }
        let most = votes.values().map(|(count, _)| *count).max().unwrap_or_default();
        if let Some((chosen, (count, said))) = votes.into_iter().find(|(_, (count, _))| *count == most) {
            result.chosen = place(distinct[chosen]);
            result.reason = format!("{count} of {} votes: {}", self.orders, said.trim());
        } else {
            result.chosen = (!candidates.is_empty()).then_some(0);
            result.reason = match std::mem::take(&mut result.reason) {
                failed if failed.is_empty() => "no vote could be read; chose the first attempt".to_owned(),
                failed => format!("no vote ({failed}); chose the first attempt"),
            };
        }
        Ok(result)
    }
}

/// Returns the indices of the candidates in a pseudo-random order that depends only on the sample's id and on `order`,
/// so it is the same on every machine. Successive orders are rotations of one shuffle, so that every candidate comes
/// first once; after `count` orders, a new shuffle begins.
fn shuffled(count: usize, sample: &str, order: u32) -> Vec<usize> {
    let (round, turn) = (order as usize / count.max(1), order as usize % count.max(1));
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by_key(|place| {
        let mut hash = Sha256::new();
        hash.update(format!("verifier\0{sample}\0{round}\0{place}"));
        hash.finalize()
    });
    places.rotate_left(turn);
    places
}

pub(super) fn prompt(question: &Question, shown: &[&Candidate]) -> String {
    let candidates: Vec<Value> = shown
        .iter()
        .enumerate()
        .map(|(place, candidate)| {
            let patch = excerpt(&candidate.patch, &question.files, LONGEST_PATCH);
            let mut fence = "```".to_owned();
            while patch.contains(&fence) {
                fence.push('`');
            }
            context! { label => label(place), patch, fence }
        })
        .collect();
    let values = context! {
        count => shown.len(),
        task => question.task.trim_end(),
        before => &question.before,
        criterion => &question.criterion,
        candidates,
        first => label(0),
    };
    Environment::new().render_str(TEMPLATE, values).unwrap_or_default()
}

fn label(place: usize) -> String {
    char::from(b'A' + place as u8).to_string()
}

/// Returns the candidate named by the last `{"choice": "X"}` of a reply. Models often put other JSON and prose before
/// it.
fn choice(reply: &str, shown: &[&Candidate]) -> VoteOutcome {
    let Some(word) = choice_word(reply) else { return VoteOutcome::Nobody };
    let letter = match word.to_ascii_uppercase().as_bytes() {
        [letter] => usize::from(*letter).checked_sub(usize::from(b'A')),
        _ => None,
    };
    match letter.and_then(|place| shown.get(place)) {
        Some(candidate) => VoteOutcome::Attempt(candidate.attempt),
        None => VoteOutcome::Unknown(word),
    }
}

/// Returns the alphanumeric word that follows the last `"choice":`.
fn choice_word(reply: &str) -> Option<String> {
    let start = reply.rfind("\"choice\"")? + "\"choice\"".len();
    let rest = reply[start..].trim_start().strip_prefix(':')?.trim_start();
    let word = rest.trim_start_matches('"').chars().take_while(|letter| letter.is_alphanumeric());
    Some(word.take(LONGEST_NAME).collect::<String>()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::tests::NoVotes;

    /// A model whose thoughts use up the tokens of every reply that has a limit.
    struct ThinkingModel(&'static str);

    #[async_trait]
    impl Model for ThinkingModel {
        fn name(&self) -> &'static str {
            "thinking"
        }

        async fn query(&self, request: &Request) -> std::result::Result<Reply, QueryFailed> {
            assert_eq!(request.messages.len(), 1, "the question is repeated as it was");
            let is_cut = request.sampling.max_tokens.is_some();
            let text = if is_cut { self.0 } else { "{\"choice\": \"A\"}" };
            Ok(Reply { text: text.to_owned(), cut: is_cut, cost: 0.5, ..Reply::default() })
        }
    }

    #[tokio::test]
    async fn a_model_whose_thoughts_use_up_its_tokens_is_asked_again_without_a_limit() {
        let candidates =
            [0, 1].map(|attempt| Candidate { attempt, patch: attempt.to_string(), ..Candidate::default() });
        for starved in ["", "<think>\nThe first one"] {
            let verifier = ByModel::new(Arc::new(ThinkingModel(starved)), 2);
            let choice = verifier.choose(&Question::default(), &candidates, &NoVotes).await.unwrap();
            assert!(choice.reason.starts_with("1 of 2 votes") && choice.unreadable == 2, "{choice:?}");
            assert!((choice.cost - 2.0).abs() < 1e-12, "both calls of both votes are paid for: {choice:?}");
        }
    }

    #[test]
    fn the_last_choice_in_a_reply_counts_and_a_letter_without_a_candidate_is_unknown() {
        let three: Vec<Candidate> = (5..8).map(|attempt| Candidate { attempt, ..Candidate::default() }).collect();
        let three: Vec<&Candidate> = three.iter().collect();
        let named = |reply: &str| choice(reply, &three);
        let unknown = |label: &str| VoteOutcome::Unknown(label.to_owned());
        assert_eq!(named("B is good.\n{\"choice\": \"B\"}"), VoteOutcome::Attempt(6));
        assert_eq!(named("{\"choice\": \"A\"} no: ```json\n{ \"choice\" : \"c\" }\n```"), VoteOutcome::Attempt(7));
        assert_eq!(named("{\"choice\": \"D\"}"), unknown("D"));
        assert_eq!(named("{\"choice\": \"AB\"}"), unknown("AB"));
        assert_eq!(named("{\"choice\": 4}"), unknown("4"));
        assert_eq!(named("{\"choice\": \"Ä\"}"), unknown("Ä"));
        assert_eq!(named(&format!("{{\"choice\": \"{}\"}}", "x".repeat(1_000_000))), unknown(&"x".repeat(40)));
        for nobody in ["{\"choice\": }", "{\"choice\": \"\"}", "I take B", "", "\"choice\""] {
            assert_eq!(named(nobody), VoteOutcome::Nobody, "{nobody}");
        }
    }

    #[test]
    fn orders_of_candidates_differ_and_are_reproducible() {
        let orders: Vec<Vec<usize>> = (0..6).map(|order| shuffled(4, "x_1", order)).collect();
        assert_eq!(orders[0], shuffled(4, "x_1", 0));
        let mut first: Vec<usize> = orders[..4].iter().map(|order| order[0]).collect();
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2, 3]);
        for sample in 0..20 {
            let sample = format!("x_{sample}");
            assert_ne!(shuffled(2, &sample, 0), shuffled(2, &sample, 1), "{sample}");
        }
        for mut order in orders {
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3]);
        }
    }
}
