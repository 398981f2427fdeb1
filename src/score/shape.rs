//! The shape of a result, as an example for the agent of what to answer.

use serde_json::Value;

use super::json::not_finite;

/// Maximum number of an object's keys that [`shape`] shows. [`long_shape`] is only for results in which an object or a
/// list has more entries.
const MOST: usize = 8;

/// Returns the short shape of a result: its keys, with `x` for numbers. Long objects are cut, and of a list only the
/// first item is shown.
#[must_use]
pub fn shape(value: &Value) -> String {
    written(value, MOST)
}

/// Returns the shape of a result with all keys and items. Returns `None` if no object or list in the result has more
/// than [`MOST`] entries, because [`shape`] suffices then. Also returns `None` if the experiment's `description`
/// contains all keys, and no list has more than [`MOST`] items.
#[must_use]
pub fn long_shape(value: &Value, description: &str) -> Option<String> {
    (is_long(value) && !is_told(value, description)).then(|| written(value, usize::MAX))
}

/// Whether an experiment's description contains all keys of a result, and no list in the result has more than [`MOST`]
/// items.
fn is_told(value: &Value, description: &str) -> bool {
    match value {
        Value::Object(items) => {
            items.iter().all(|(key, value)| description.contains(key) && is_told(value, description))
        }
        Value::Array(items) => items.len() <= MOST && items.iter().all(|item| is_told(item, description)),
        _ => true,
    }
}

fn is_long(value: &Value) -> bool {
    match value {
        Value::Object(items) => items.len() > MOST || items.values().any(is_long),
        Value::Array(items) => items.len() > MOST || items.iter().any(is_long),
        _ => false,
    }
}

fn written(value: &Value, most: usize) -> String {
    match value {
        Value::Number(_) => "x".to_owned(),
        Value::Array(items) if most == MOST => {
            let first = items.first().map_or(String::new(), shape);
            if items.len() > 1 { format!("[{first}, ...]") } else { format!("[{first}]") }
        }
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(|item| written(item, most)).collect();
            format!("[{}]", parts.join(", "))
        }
        Value::Object(items) => {
            let entry =
                |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), written(value, most));
            let mut parts: Vec<String> = items.iter().take(most).map(entry).collect();
            if items.len() > most {
                parts.push("...".to_owned());
            }
            format!("{{{}}}", parts.join(", "))
        }
        // Strings such as `NaN` and `Infinity` represent numbers.
        Value::String(text) if not_finite(text).is_some() => "x".to_owned(),
        Value::String(_) => "\"text\"".to_owned(),
        Value::Bool(_) => "true or false".to_owned(),
        Value::Null => "null".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_shape_of_a_result_shows_its_keys_and_kinds_of_values_but_no_values() {
        let value = json!({"a": 0.5, "b": {"c": [1, 2], "d": "n"}, "e": true});
        assert_eq!(shape(&value), "{\"a\": x, \"b\": {\"c\": [x, ...], \"d\": \"text\"}, \"e\": true or false}");
        assert_eq!(long_shape(&value, ""), None);
        assert_eq!(shape(&json!({"a": "NaN", "b": "-Infinity", "c": "nan."})), "{\"a\": x, \"b\": x, \"c\": \"text\"}");
    }

    #[test]
    fn the_unshortened_shape_of_an_answer_lists_every_key_and_item() {
        let keys: serde_json::Map<String, Value> = (0..9).map(|key| (format!("k{key}"), json!([1, 2]))).collect();
        let value = json!({ "rows": keys });
        assert!(shape(&value).ends_with("\"k7\": [x, ...], ...}}"), "{}", shape(&value));
        let long = long_shape(&value, &shape(&value)).unwrap();
        assert_eq!(long_shape(&value, &long), None);
        assert!(long.ends_with("\"k8\": [x, x]}}") && !long.contains("..."), "{long}");
    }
}
