//! Ranges of Python versions that an environment accepts, in the syntax of conda's match specifications.
//!
//! `=3.11` and `3.11.*` mean any 3.11; `==3.11.7` and a bare `3.11.7` mean exactly 3.11.7; `>=`, `>`, `<=`, `<`, `!=`
//! and `~=` compare; a comma means "and". Alternatives (`|`) and build strings are not supported. Source: conda's
//! documentation, "package match specifications".

use std::fmt;

/// Major, minor and patch.
pub(super) type PythonVersion = [u64; 3];

/// The oldest supported version.
pub(super) const OLDEST: PythonVersion = [3, 9, 0];

/// A range of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PythonSpec {
    text: String,
    clauses: Vec<Clause>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Clause {
    AtLeast(PythonVersion),
    Above(PythonVersion),
    AtMost(PythonVersion),
    Below(PythonVersion),
    Is(PythonVersion),
    IsNot(PythonVersion),
    Starts(Vec<u64>),
    StartsNot(Vec<u64>),
}

impl PythonSpec {
    /// Returns the range of all versions.
    pub(super) fn any() -> Self {
        Self { text: String::new(), clauses: Vec::new() }
    }

    /// Parses a range, which is the part of a specification after the package's name. The error names the part that is
    /// invalid.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let parts = text.split(',').map(str::trim).filter(|_| !text.is_empty());
        let clauses = parts.map(clause).collect::<Result<Vec<_>, _>>()?.concat();
        Ok(Self { text: text.to_owned(), clauses })
    }

    pub(super) fn matches(&self, version: PythonVersion) -> bool {
        self.clauses.iter().all(|clause| match clause {
            Clause::AtLeast(bound) => version >= *bound,
            Clause::Above(bound) => version > *bound,
            Clause::AtMost(bound) => version <= *bound,
            Clause::Below(bound) => version < *bound,
            Clause::Is(other) => version == *other,
            Clause::IsNot(other) => version != *other,
            Clause::Starts(start) => version.starts_with(start),
            Clause::StartsNot(start) => !version.starts_with(start),
        })
    }
}

/// Checks that a range of versions is valid.
///
/// # Errors
/// An error message that names the invalid part.
pub fn readable(range: &str) -> Result<(), String> {
    PythonSpec::parse(range).map(drop)
}

/// Whether a version such as `3.11.7` is in a range; `None` if either is invalid.
#[must_use]
pub fn accepts(range: &str, version: &str) -> Option<bool> {
    let mut numbers = [0; 3];
    for (place, part) in version.split('.').take(3).enumerate() {
        numbers[place] = part.parse().ok()?;
    }
    Some(PythonSpec::parse(range).ok()?.matches(numbers))
}

impl fmt::Display for PythonSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "python{}{}", if self.text.starts_with(|c: char| c.is_ascii_digit()) { " " } else { "" }, self.text)
    }
}

fn clause(text: &str) -> Result<Vec<Clause>, String> {
    const OPERATORS: [&str; 8] = [">=", "<=", "==", "!=", "~=", ">", "<", "="];
    let operator = OPERATORS.into_iter().find(|operator| text.starts_with(operator)).unwrap_or("");
    let rest = text[operator.len()..].trim();
    let (digits, wildcard) = match rest.strip_suffix('*') {
        Some(digits) => (digits.trim_end_matches('.'), true),
        None => (rest, false),
    };
    let numbers: Vec<u64> = digits
        .split('.')
        .map(|part| part.parse().map_err(|_| format!("`{rest}` is not a version")))
        .collect::<Result<_, _>>()?;
    if numbers.len() > 3 {
        return Err(format!("`{rest}` has more than three numbers"));
    }
    let mut version = [0; 3];
    version[..numbers.len()].copy_from_slice(&numbers);
    Ok(match (operator, wildcard) {
        ("=", _) | ("" | "==", true) => vec![Clause::Starts(numbers)],
        ("!=", true) => vec![Clause::StartsNot(numbers)],
        ("" | "==", false) => vec![Clause::Is(version)],
        ("!=", false) => vec![Clause::IsNot(version)],
        // conda ignores a star after a comparison operator such as `>=`.
        (">=", _) => vec![Clause::AtLeast(version)],
        ("<=", _) => vec![Clause::AtMost(version)],
        (">", _) => vec![Clause::Above(version)],
        ("<", _) => vec![Clause::Below(version)],
        ("~=", false) if numbers.len() > 1 => {
            vec![Clause::AtLeast(version), Clause::Starts(numbers[..numbers.len() - 1].to_vec())]
        }
        _ => return Err(format!("`{text}` is not a version or a range of versions")),
    })
}

#[cfg(test)]
mod tests {
    use super::PythonSpec;

    #[test]
    fn specifications_match_as_in_conda() {
        for (text, inside, outside) in [
            ("", vec![[3, 9, 0], [3, 14, 2]], vec![]),
            ("=3.11", vec![[3, 11, 0], [3, 11, 7]], vec![[3, 12, 0], [3, 1, 1]]),
            (" 3.11.*", vec![[3, 11, 7]], vec![[3, 10, 9]]),
            ("==3.11.7", vec![[3, 11, 7]], vec![[3, 11, 8]]),
            (" 3.11.7", vec![[3, 11, 7]], vec![[3, 11, 8]]),
            (">=3.10,<3.14", vec![[3, 10, 0], [3, 13, 9]], vec![[3, 9, 18], [3, 14, 0]]),
            (" >3.10.1, <=3.12", vec![[3, 10, 2], [3, 12, 0]], vec![[3, 10, 1], [3, 12, 1]]),
            (">=3.10,!=3.11.*,!=3.12.1", vec![[3, 10, 0], [3, 12, 0]], vec![[3, 11, 4], [3, 12, 1]]),
            ("~=3.10", vec![[3, 10, 0], [3, 13, 0]], vec![[3, 9, 0], [4, 0, 0]]),
            ("~=3.10.2", vec![[3, 10, 9]], vec![[3, 10, 1], [3, 11, 0]]),
            ("3", vec![[3, 0, 0]], vec![[3, 1, 0]]),
        ] {
            let spec = PythonSpec::parse(text).unwrap();
            assert!(inside.iter().all(|version| spec.matches(*version)), "{text}");
            assert!(!outside.iter().any(|version| spec.matches(*version)), "{text}");
        }
    }

    #[test]
    fn unsupported_version_specs_are_rejected() {
        for text in ["=3.11 h12_0", ">=3.10|=3.8", "=", "~=3", ">=three", "=3.1.2.3", ",", ">=3.9,"] {
            assert!(PythonSpec::parse(text).is_err(), "{text}");
        }
    }
}
