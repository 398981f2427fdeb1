//! The whole history as one message of thoughts, actions and observations. All observations except the newest are cut
//! to a few hundred characters.

use crate::agent::history::SHORT;
use crate::agent::tail::tail;
use crate::model::{Message, Role};

/// Maximum characters of the newest observation.
const LONG: usize = 50_000;

/// Replies and observations of all turns so far.
#[derive(Default)]
pub struct PastTurns {
    turns: Vec<(String, String)>,
}

impl PastTurns {
    /// Adds a turn, which is a reply of the model and the observation that follows.
    pub fn add(&mut self, said: String, observation: String) {
        self.turns.push((said, observation));
    }

    /// Builds the messages of a request: the prompt, and a message with the history unless it is empty.
    pub fn messages(&self, prompt: &Message) -> Vec<Message> {
        let newest = self.turns.len().saturating_sub(1);
        let turns = self.turns.iter().enumerate().map(|(place, (said, observation))| {
            let observation = if place == newest { observation.clone() } else { cut_end(observation, SHORT) };
            format!("{said}\nObservation: {observation}\n")
        });
        let history = turns.collect::<Vec<_>>().join("\n");
        let history = (!history.is_empty()).then(|| Message::new(Role::Assistant, history.trim_end()));
        std::iter::once(prompt.clone()).chain(history).collect()
    }
}

/// Cuts the newest observation to its maximum length.
pub fn newest(observation: &str) -> String {
    cut_end(observation, LONG)
}

/// Returns the last `most` characters of a text, after a note on how many were cut.
fn cut_end(text: &str, most: usize) -> String {
    let cut = text.chars().count().saturating_sub(most);
    if cut == 0 {
        return text.to_owned();
    }
    format!("[... {cut} characters cut ...]\n{}", tail(text, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_turns_form_one_message_in_which_older_observations_are_cut_shorter_than_the_newest() {
        let prompt = Message::new(Role::User, "question");
        let mut past = PastTurns::default();
        assert_eq!(past.messages(&prompt).len(), 1);
        past.add("Thought: a".to_owned(), format!("{}end", "x".repeat(SHORT)));
        past.add("Thought: b".to_owned(), newest(&"y".repeat(LONG + 7)));
        let messages = past.messages(&prompt);
        assert_eq!((messages.len(), messages[1].role), (2, Role::Assistant));
        let text = &messages[1].content;
        assert!(text.starts_with("Thought: a\nObservation: [... 3 characters cut ...]\nxxx"), "{}", &text[..80]);
        assert!(text.contains("xend\n\nThought: b\nObservation: [... 7 characters cut ...]\nyyy"));
        assert_eq!(text.matches('y').count(), LONG);
        assert_eq!(text.matches('x').count(), SHORT - 3);
    }
}
