//! The page's templates, embedded in the program.

use std::sync::LazyLock;

use minijinja::{Environment, Value, escape_formatter};

use crate::error::{Error, Result};
use crate::report::clean::is_unsafe;

/// Whether a character must be escaped in a page. Line breaks and tabs may stay.
fn is_deceiving(c: char) -> bool {
    is_unsafe(c) && !matches!(c, '\n' | '\r' | '\t')
}

/// Renders one of the templates; every value is escaped unless it is marked as safe.
pub(super) fn render(name: &str, values: Value) -> Result<String> {
    static ENVIRONMENT: LazyLock<Result<Environment<'static>, minijinja::Error>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        // Escape characters that reverse or hide the text around them.
        environment.set_formatter(|out, state, value| {
            let deceiving = value.as_str().filter(|text| !value.is_safe() && text.contains(is_deceiving));
            let shown = deceiving.map(|text| {
                let each = |c: char| if is_deceiving(c) { c.escape_default().to_string() } else { c.to_string() };
                Value::from(text.chars().map(each).collect::<String>())
            });
            escape_formatter(out, state, shown.as_ref().unwrap_or(value))
        });
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
