//! The cost of checking whether a model answers.

use super::Usage;

/// Cost of the test call that checks whether a model answers; zero if no test call was made.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProbeCost {
    /// Tokens used.
    pub usage: Usage,
    /// Cost in dollars.
    pub cost: f64,
}

impl ProbeCost {
    /// Describes the cost in words; `None` if it is zero.
    #[must_use]
    pub(crate) fn describe(&self) -> Option<String> {
        let Usage { input, output, .. } = self.usage;
        let told =
            || format!("a test call to the model cost ${:.6} ({input} tokens read, {output} written)", self.cost);
        (self.cost > 0.0).then(told)
    }
}

impl std::ops::AddAssign for ProbeCost {
    fn add_assign(&mut self, other: Self) {
        self.usage += other.usage;
        self.cost += other.cost;
    }
}
