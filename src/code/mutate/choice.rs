//! Chooses which mutants to run if running all of them would take too long.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::{Mutant, MutantKind};

/// Chooses at most `count` of a function's mutants, spread over kinds and lines. Trivial mutants are chosen only when
/// no others are left.
///
/// The order depends only on `seed` and the ids. The next mutant is always the one whose kind was chosen least often so
/// far; among these, the one whose line was chosen least often; among these, the one whose hash (of seed and id) is
/// smallest. So the choice for a smaller count is always a prefix of the choice for a larger one.
#[must_use]
pub fn choose(mutants: &[Mutant], count: usize, seed: u64) -> Vec<&Mutant> {
    let mut left: Vec<(&Mutant, [u8; 32])> = mutants.iter().map(|mutant| (mutant, hash(seed, &mutant.id))).collect();
    let mut kinds: HashMap<MutantKind, usize> = HashMap::new();
    let mut lines: HashMap<usize, usize> = HashMap::new();
    let mut chosen = Vec::with_capacity(count.min(left.len()));
    while chosen.len() < count {
        let taken = |mutant: &Mutant| {
            let of_kind = kinds.get(&mutant.kind).copied().unwrap_or_default();
            (mutant.trivial, of_kind, lines.get(&mutant.line).copied().unwrap_or_default())
        };
        let next = (0..left.len()).min_by_key(|&at| (taken(left[at].0), left[at].1));
        let Some((mutant, _)) = next.map(|at| left.swap_remove(at)) else { break };
        *kinds.entry(mutant.kind).or_default() += 1;
        *lines.entry(mutant.line).or_default() += 1;
        chosen.push(mutant);
    }
    chosen
}

fn hash(seed: u64, id: &str) -> [u8; 32] {
    Sha256::new().chain_update(b"mutant\0").chain_update(seed.to_le_bytes()).chain_update(id).finalize().into()
}
