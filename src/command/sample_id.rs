//! Sample ids of instructions: `kmeanspp.c07_2` is the instruction `c07` of `kmeanspp` with context 2.

use super::context::LAYERS;
use crate::error::{Error, Result};

/// Parses a sample id: returns the repo, the instruction and the number of the context, such as `kmeanspp`, `c07` and 2
/// for `kmeanspp.c07_2`.
///
/// # Errors
/// Kind `Usage` if the text isn't a sample id.
pub fn parts(id: &str) -> Result<(&str, &str, usize)> {
    let read = || {
        let (rest, n) = id.rsplit_once('_')?;
        let (repo, instruction) = rest.rsplit_once('.')?;
        let n = n.parse().ok().filter(|n: &usize| n.to_string() == *id.rsplit('_').next().unwrap_or_default())?;
        (!repo.is_empty() && !instruction.is_empty() && n < LAYERS.len()).then_some((repo, instruction, n))
    };
    read().ok_or_else(|| {
        Error::usage(format!("`{}` is not a sample id", id.escape_debug())).hint(
            "a sample id is a repo, an instruction, and a context from 0 to 3, such as `kmeanspp.c07_2`; 0 is the oracle segment, \
             1 BM25, 2 the README and 3 the instruction only",
        )
    })
}
