//! A message's text in the form sent to a model.

use super::Message;
use super::features::ModelTarget;

/// Text sent in place of an empty text, because providers refuse messages without text.
const EMPTY: &str = "(empty)";

/// Returns a message's text. Pictures that the model does not accept are replaced by notes.
pub(super) fn text(target: &ModelTarget, message: &Message) -> String {
    let mut text = message.content.clone();
    if !target.features.images {
        for image in &message.images {
            let size = image.data.len() * 3 / 4000;
            let note = format!("\n[a picture stood here ({}, {size} kB), and this model takes none]", image.media_type);
            text.push_str(&note);
        }
    }
    if text.trim().is_empty() { EMPTY.to_owned() } else { text }
}
