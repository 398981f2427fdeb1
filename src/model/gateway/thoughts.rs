//! Replaces the thoughts of an agent's model by tokens. Only their own provider can read thoughts, so the agent gets a
//! token in the field for a signature or encrypted content, if its protocol has one. When the token comes back, it is
//! replaced by the thoughts.

use std::collections::HashMap;

use crate::model::{Message, Thought};

/// Beginning of every token.
const PREFIX: &str = "autoexperiment-thoughts-";

/// Returns the token for the thoughts of a call's reply.
pub(super) fn token(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// Returns a placeholder for the thoughts of a token, to go into a message being read; `None` if the token is not ours.
pub(super) fn placeholder(token: &str) -> Option<Thought> {
    token.starts_with(PREFIX).then(|| Thought::Signature { signature: token.to_owned(), call_id: None })
}

/// Thoughts by their tokens.
#[derive(Debug, Default)]
pub(super) struct ThoughtStore(HashMap<String, Vec<Thought>>);

impl ThoughtStore {
    /// Remembers the thoughts of a reply.
    pub(super) fn keep(&mut self, number: u64, thoughts: &[Thought]) {
        if !thoughts.is_empty() {
            self.0.insert(token(number), thoughts.to_vec());
        }
    }

    /// Replaces tokens by their thoughts, and removes unknown tokens.
    pub(super) fn put_back(&self, messages: &mut [Message]) {
        for message in messages.iter_mut().filter(|message| !message.thoughts.is_empty()) {
            let mut thoughts = Vec::new();
            for placeholder in std::mem::take(&mut message.thoughts) {
                let Thought::Signature { signature, .. } = &placeholder else { continue };
                // A reply may contain its token several times.
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
