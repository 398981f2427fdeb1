//! The page's templates, compiled in.

use std::sync::LazyLock;

use minijinja::{Environment, Value};

use crate::error::{Error, Result};

/// Renders one of the templates, in which every value is escaped unless it is marked as safe.
pub(super) fn render(name: &str, values: Value) -> Result<String> {
    static ENVIRONMENT: LazyLock<Result<Environment<'static>, minijinja::Error>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        // By their names minijinja knows that these are HTML.
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
