//! What a model is shown of a message.

use super::Message;
use super::features::Target;

/// Providers refuse messages without text.
const EMPTY: &str = "(empty)";

/// A message's text, with a note for the pictures that the model cannot see.
pub(super) fn text(target: &Target, message: &Message) -> String {
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
