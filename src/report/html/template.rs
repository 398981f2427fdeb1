//! The page's templates, embedded in the program.

use std::fmt::Write as _;
use std::sync::LazyLock;

use minijinja::{Environment, HtmlEscape, Value, escape_formatter};

use crate::error::{Error, Result};
use crate::report::clean::is_unsafe;

/// Whether a character must be escaped in a page. Line breaks and tabs may stay.
fn is_deceiving(c: char) -> bool {
    is_unsafe(c) && !matches!(c, '\n' | '\r' | '\t')
}

/// Escapes the characters that reverse or hide the text around them.
fn without_deceiving(text: &str) -> String {
    text.chars().map(|c| if is_deceiving(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// Escapes text and shows what is between backticks as code.
fn prose(text: &str) -> Value {
    let text = without_deceiving(text);
    let parts: Vec<&str> = text.split('`').collect();
    let mut html = String::new();
    for (place, part) in parts.iter().enumerate() {
        // A last backtick without a closing backtick is kept as text.
        let is_last = place + 1 == parts.len();
        let part = HtmlEscape(part);
        // Writing to a string does not fail.
        let _ = match (place % 2 == 1, is_last) {
            (true, false) => write!(html, "<code>{part}</code>"),
            (true, true) => write!(html, "`{part}"),
            (false, _) => write!(html, "{part}"),
        };
    }
    Value::from_safe_string(html)
}

/// Characters after which a long name may continue on the next line.
const JOINTS: [char; 9] = ['/', '.', '_', ':', '+', '=', '@', '-', '|'];
/// A name may also continue on the next line after this many characters without one of [`JOINTS`].
const LONGEST_PART: usize = 32;

/// Escapes a name and marks where it may continue on the next line: after one of [`JOINTS`] that precedes a letter, or
/// after [`LONGEST_PART`] characters without such a place.
fn breakable(text: &str) -> Value {
    let text = without_deceiving(text);
    let (mut html, mut length) = (String::new(), 0);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        html.push_str(&HtmlEscape(c.encode_utf8(&mut [0; 4])).to_string());
        length = if c.is_whitespace() { 0 } else { length + 1 };
        let is_joint = JOINTS.contains(&c) && chars.peek().is_some_and(|next| next.is_alphabetic());
        if is_joint || length >= LONGEST_PART {
            html.push_str("<wbr>");
            length = 0;
        }
    }
    Value::from_safe_string(html)
}

/// Renders one of the templates; every value is escaped unless it is marked as safe.
pub(super) fn render(name: &str, values: Value) -> Result<String> {
    static ENVIRONMENT: LazyLock<Result<Environment<'static>, minijinja::Error>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        // Escape characters that reverse or hide the text around them.
        environment.set_formatter(|out, state, value| {
            let deceiving = value.as_str().filter(|text| !value.is_safe() && text.contains(is_deceiving));
            let shown = deceiving.map(|text| Value::from(without_deceiving(text)));
            escape_formatter(out, state, shown.as_ref().unwrap_or(value))
        });
        environment.add_filter("prose", prose);
        environment.add_filter("breakable", breakable);
        // The `.html` suffix makes minijinja escape values.
        environment.add_template("page.html", include_str!("page.html"))?;
        environment.add_template("overview.html", include_str!("overview.html"))?;
        environment.add_template("figures.html", include_str!("figures.html"))?;
        environment.add_template("table.html", include_str!("table.html"))?;
        Ok(environment)
    });
    let failed = |error: &minijinja::Error| Error::internal(format!("failed to render `{name}`: {error:#}"));
    match &*ENVIRONMENT {
        Ok(environment) => {
            environment.get_template(name).and_then(|template| template.render(values)).map_err(|error| failed(&error))
        }
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_become_code_and_everything_else_is_escaped() {
        let html = |text: &str| prose(text).to_string();
        assert_eq!(html("use `a <b>` or c`d"), "use <code>a &lt;b&gt;</code> or c`d");
        assert_eq!(html("`<i>`\u{202e}"), "<code>&lt;i&gt;</code>\\u{202e}");
    }

    #[test]
    fn long_names_may_break_after_separators_and_inside_very_long_words() {
        let html = |text: &str| breakable(text).to_string();
        assert_eq!(html("board&react+tools=super"), "board&amp;react+<wbr>tools=<wbr>super");
        assert_eq!(html("Spread.variance"), "Spread.<wbr>variance");
        assert_eq!(html("calibration_10 v1.5"), "calibration_10 v1.5");
        let long = html(&"x".repeat(100));
        assert_eq!(long.matches("<wbr>").count(), 3);
    }
}
