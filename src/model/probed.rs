//! What it costs to ask a model whether it answers.

use super::Usage;

/// What a question cost that showed whether a model answers; nothing, where none was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Probed {
    /// Tokens.
    pub usage: Usage,
    /// Dollars.
    pub cost: f64,
}

impl Probed {
    /// What it cost, in words; `None` where it cost nothing.
    #[must_use]
    pub(crate) fn told(&self) -> Option<String> {
        let Usage { input, output, .. } = self.usage;
        let told =
            || format!("a question whether it answers cost ${:.6} ({input} tokens read, {output} written)", self.cost);
        (self.cost > 0.0).then(told)
    }
}

impl std::ops::AddAssign for Probed {
    fn add_assign(&mut self, other: Self) {
        self.usage += other.usage;
        self.cost += other.cost;
    }
}
