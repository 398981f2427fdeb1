//! Replaces a model's thoughts by tokens, short placeholder texts, in the replies to an external agent. Only the
//! provider that wrote the thoughts can read them, so the agent gets a token in the protocol's field for a signature or
//! for encrypted content, if there is such a field. When the agent sends the token back, the gateway replaces it by the
//! thoughts.

use std::collections::HashMap;

use crate::model::{Message, Thought};

/// First characters of every token that represents thoughts.
const PREFIX: &str = "autoexperiment-thoughts-";

/// Returns the token for the thoughts of a call's reply.
pub(super) fn token(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// Converts a token in an agent's message to a [`Thought`] that contains only the token. [`ThoughtStore::put_back`]
/// later replaces it by the model's thoughts. Returns `None` if the gateway did not make the token.
pub(super) fn placeholder(token: &str) -> Option<Thought> {
    token.starts_with(PREFIX).then(|| Thought::Signature { signature: token.to_owned(), call_id: None })
}

/// The model's thoughts, by the tokens that represent them.
#[derive(Debug, Default)]
pub(super) struct ThoughtStore(HashMap<String, Vec<Thought>>);

impl ThoughtStore {
    /// Stores the thoughts of a reply.
    pub(super) fn keep(&mut self, number: u64, thoughts: &[Thought]) {
        if !thoughts.is_empty() {
            self.0.insert(token(number), thoughts.to_vec());
        }
    }

    /// Replaces the tokens in messages by the thoughts that they represent, and removes unknown tokens.
    pub(super) fn put_back(&self, messages: &mut [Message]) {
        for message in messages.iter_mut().filter(|message| !message.thoughts.is_empty()) {
            let mut thoughts = Vec::new();
            for placeholder in std::mem::take(&mut message.thoughts) {
                let Thought::Signature { signature, .. } = &placeholder else { continue };
                // The agent may send a reply's token several times in one message; add the reply's thoughts only once.
                for thought in self.0.get(signature).into_iter().flatten() {
                    if !thoughts.contains(thought) {
                        thoughts.push(thought.clone());
                    }
                }
            }
            message.thoughts = thoughts;
        }
    }
}
