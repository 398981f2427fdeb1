//! The thoughts of a program's model. Their own provider alone can read them, so a program gets a token in their place,
//! where its protocol has one for a signature or for what is encrypted, and they go back when the token comes back.

use std::collections::HashMap;

use crate::model::{Message, Thought};

/// How a token begins.
const PREFIX: &str = "autoexperiment-thoughts-";

/// By what the thoughts of a call's reply are known.
pub(super) fn token(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// What stands in a message that is read for the thoughts of a token; `None` for what is none of ours.
pub(super) fn placeholder(token: &str) -> Option<Thought> {
    token.starts_with(PREFIX).then(|| Thought::Signature { signature: token.to_owned(), call_id: None })
}

/// The thoughts that have been given out.
#[derive(Debug, Default)]
pub(super) struct Given(HashMap<String, Vec<Thought>>);

impl Given {
    /// Keeps the thoughts of a reply.
    pub(super) fn keep(&mut self, number: u64, thoughts: &[Thought]) {
        if !thoughts.is_empty() {
            self.0.insert(token(number), thoughts.to_vec());
        }
    }

    /// Puts thoughts in the places of their tokens. Tokens that stand for nothing go.
    pub(super) fn put_back(&self, messages: &mut [Message]) {
        for message in messages.iter_mut().filter(|message| !message.thoughts.is_empty()) {
            let mut thoughts = Vec::new();
            for placeholder in std::mem::take(&mut message.thoughts) {
                let Thought::Signature { signature, .. } = &placeholder else { continue };
                // A reply may show its token several times.
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
