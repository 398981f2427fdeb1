//! Parsing shared by all protocols: message contents with pictures, parts of requests that the gateway does not pass on
//! to the model, and requests that it refuses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Refusal;
use crate::model::{Effort, Image, Message, ReplyFormat, Role, ToolCallChoice};

/// Media types that every provider with picture support accepts.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Maximum characters of a quoted name.
const SHOWN: usize = 80;

/// Collects the parts of a request that are not passed on.
#[derive(Debug, Default)]
pub(super) struct RequestReader {
    /// Descriptions of the parts that are not passed on, without duplicates.
    pub(super) left_out: Vec<String>,
}

/// The content of a message.
#[derive(Debug, Default)]
pub(super) struct ReadContent {
    pub(super) text: String,
    pub(super) images: Vec<Image>,
}

impl ReadContent {
    pub(super) fn message(self, role: Role) -> Message {
        Message { images: self.images, ..Message::new(role, self.text) }
    }
}

impl RequestReader {
    /// Stores the description of a part that the gateway does not pass on to the model.
    pub(super) fn leave_out(&mut self, what: impl Into<String>) {
        let what: String = what.into().chars().take(SHOWN).collect();
        if !self.left_out.contains(&what) && self.left_out.len() < 100 {
            self.left_out.push(what);
        }
    }

    /// Does the same as [`Self::leave_out`] for each field of an object that is not in `known`.
    pub(super) fn leave_out_fields(&mut self, body: &Value, within: &str, known: &[&str]) {
        let fields = body.as_object().into_iter().flatten();
        for (name, _) in fields.filter(|(name, value)| !value.is_null() && !known.contains(&name.as_str())) {
            self.leave_out(format!("`{within}{name}`"));
        }
    }

    /// Reads the content of a message: a text, or a list of parts in any protocol's format.
    pub(super) fn content(&mut self, content: Option<&Value>) -> Result<ReadContent, Refusal> {
        match content {
            None | Some(Value::Null) => Ok(ReadContent::default()),
            Some(Value::String(text)) => Ok(ReadContent { text: text.clone(), images: Vec::new() }),
            Some(Value::Array(parts)) => {
                let mut texts = Vec::new();
                let mut images = Vec::new();
                for part in parts {
                    self.part(part, &mut texts, &mut images);
                }
                Ok(ReadContent { text: texts.join("\n"), images })
            }
            Some(_) => Err(Refusal::invalid("`content` is neither a text nor a list of parts")),
        }
    }

    /// Reads one part: a text, a picture, or something else, which is replaced by a note.
    pub(super) fn part(&mut self, part: &Value, texts: &mut Vec<String>, images: &mut Vec<Image>) {
        if let Some(text) = part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_str) {
            texts.push(text.to_owned());
            return;
        }
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("part of another kind");
        match picture(part) {
            Some(image) => images.push(image),
            None => texts.push(self.missing(kind)),
        }
    }

    /// Calls [`Self::leave_out`] for a part of this kind, and returns a note to put in the part's place.
    pub(super) fn missing(&mut self, kind: &str) -> String {
        let kind: String = kind.chars().take(SHOWN).collect();
        self.leave_out(format!("a `{kind}` in the conversation"));
        format!("[a `{kind}` stood here, which the gateway does not pass on]")
    }
}

/// Refuses a request with a tool that the provider would run itself, or that has no description because the provider's
/// models already know it. The gateway does not just leave the tool out, because the results would then not be those of
/// the agent that is to be measured.
pub(super) fn foreign_tool(kind: &str) -> Refusal {
    let kind: String = kind.chars().take(SHOWN).collect();
    Refusal::invalid(format!(
        "this gateway cannot pass on the tool `{kind}`: it passes on tools that the agent runs itself and describes by a \
         schema, a text or a namespace of these. Turn the tool off in the agent's settings"
    ))
}

/// Reads a picture in any protocol's format if the request contains its bytes. Pictures given by address are not
/// fetched.
fn picture(part: &Value) -> Option<Image> {
    let text = |pointer: &str| part.pointer(pointer).and_then(Value::as_str);
    let (media_type, data) = match text("/type") {
        Some("image") => (text("/source/media_type")?, text("/source/data")?),
        Some("image_url" | "input_image") => of_address(text("/image_url/url").or_else(|| text("/image_url"))?)?,
        None => (text("/inlineData/mimeType")?, text("/inlineData/data")?),
        Some(_) => return None,
    };
    // Drop broken pictures: a single one would make the provider refuse the whole conversation.
    let is_whole = PICTURES.contains(&media_type) && STANDARD.decode(data).is_ok_and(|bytes| !bytes.is_empty());
    is_whole.then(|| Image { media_type: media_type.to_owned(), data: data.to_owned() })
}

/// Splits `data:image/png;base64,...` into media type and data.
fn of_address(address: &str) -> Option<(&str, &str)> {
    address.strip_prefix("data:")?.split_once(";base64,")
}

/// Returns the list in a field, or an empty list.
pub(super) fn list<'a>(body: &'a Value, name: &str) -> &'a [Value] {
    body.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the text in a field, or an empty text.
pub(super) fn text(body: &Value, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the number in a field, if there is one.
pub(super) fn count(body: &Value, name: &str) -> Option<u32> {
    body.get(name).and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok())
}

/// Reads a reasoning effort; OpenAI, Anthropic and Gemini use the same names.
pub(super) fn effort(word: Option<&Value>) -> Option<Effort> {
    serde_json::from_value(Value::String(word?.as_str()?.to_lowercase())).ok()
}

/// Parses a call's arguments, which are written as a JSON text.
pub(super) fn arguments(written: Option<&Value>) -> Value {
    match written {
        Some(Value::String(written)) if written.trim().is_empty() => json!({}),
        Some(Value::String(written)) => {
            serde_json::from_str(written).unwrap_or_else(|_| Value::String(written.clone()))
        }
        Some(other) => other.clone(),
        None => json!({}),
    }
}

/// Reads the tool choice in OpenAI's format; `name` is the JSON pointer to the tool's name.
pub(super) fn choice(choice: Option<&Value>, name: &str) -> Option<ToolCallChoice> {
    match choice? {
        Value::String(word) => match word.as_str() {
            "auto" => Some(ToolCallChoice::Auto),
            "none" => Some(ToolCallChoice::None),
            "required" => Some(ToolCallChoice::Required),
            _ => None,
        },
        object => Some(ToolCallChoice::Tool(object.pointer(name)?.as_str()?.to_owned())),
    }
}

/// Reads the reply format in OpenAI's format; `within` is the field that contains the schema, if it is nested.
pub(super) fn format(format: Option<&Value>, within: Option<&str>) -> Option<ReplyFormat> {
    let format = format?;
    match format.get("type")?.as_str()? {
        "json_object" => Some(ReplyFormat::Json),
        "json_schema" => {
            let said = within.map_or(Some(format), |within| format.get(within))?;
            let name = said.get("name").and_then(Value::as_str).unwrap_or("reply").to_owned();
            Some(ReplyFormat::Schema {
                name,
                schema: said.get("schema")?.clone(),
                strict: said.get("strict").and_then(Value::as_bool),
            })
        }
        _ => None,
    }
}
