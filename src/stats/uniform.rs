//! Reproducible random numbers for simulations, which depend on a seed alone.

/// A generator of numbers in [0, 1) (a linear congruential generator with Knuth's MMIX constants).
pub struct Uniform(pub(super) u64);

impl Uniform {
    /// Creates a generator; the same seed always gives the same numbers.
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws how many of k attempts pass if each passes with probability `chance`.
    pub(super) fn passes(&mut self, k: usize, chance: f64) -> usize {
        (0..k).filter(|_| self.next() < chance).count()
    }
}
