//! Evaluates the conditions (environment markers, PEP 508) under which requirements apply.

use std::iter::Peekable;

use regex::Regex;

use super::version::{Version, VersionRange};

/// Whether a requirement applies to envs of this machine with this version of Python, such as `3.12`. A condition that
/// cannot be evaluated counts as fulfilled.
pub(super) fn applies(requirement: &str, python: &str) -> bool {
    let Some((_, condition)) = requirement.split_once(';') else { return true };
    let Ok(token) = Regex::new(r#"[()]|"[^"]*"|'[^']*'|[<>=!~]+|[\w.]+"#) else { return true };
    let tokens: Vec<&str> = token.find_iter(condition).map(|found| found.as_str()).collect();
    let mut condition = Condition { tokens: tokens.into_iter().peekable(), python };
    let found = condition.any();
    found.is_none_or(|found| found || condition.tokens.next().is_some())
}

/// The rest of a condition.
struct Condition<'a> {
    tokens: Peekable<std::vec::IntoIter<&'a str>>,
    /// Version of Python; empty if it is unknown.
    python: &'a str,
}

impl<'a> Condition<'a> {
    /// Evaluates parts that are joined by `or`. Like the other methods, returns `None` if a part cannot be evaluated.
    fn any(&mut self) -> Option<bool> {
        let mut found = self.all()?;
        while self.tokens.next_if_eq(&"or").is_some() {
            found |= self.all()?;
        }
        Some(found)
    }

    /// Evaluates parts that are joined by `and`.
    fn all(&mut self) -> Option<bool> {
        let mut found = self.one()?;
        while self.tokens.next_if_eq(&"and").is_some() {
            found &= self.one()?;
        }
        Some(found)
    }

    /// Evaluates a comparison, or a condition in parentheses.
    fn one(&mut self) -> Option<bool> {
        if self.tokens.next_if_eq(&"(").is_some() {
            let found = self.any()?;
            return self.tokens.next_if_eq(&")").map(|_| found);
        }
        let left = self.tokens.next()?;
        let left = self.value(left)?;
        let operator = self.tokens.next()?;
        let is_negated = operator == "not" && self.tokens.next_if_eq(&"in").is_some();
        let right = self.tokens.next()?;
        let right = self.value(right)?;
        if let (Some(version), Some(range)) = (Version::parse(left), VersionRange::parse(&format!("{operator}{right}")))
        {
            return Some(range.allows(&version));
        }
        match operator {
            "==" => Some(left == right),
            "!=" => Some(left != right),
            "in" => Some(right.contains(left)),
            "not" if is_negated => Some(!right.contains(left)),
            _ => None,
        }
    }

    /// Returns the value of a variable or of a quoted text.
    fn value(&self, token: &'a str) -> Option<&'a str> {
        if token.starts_with(['"', '\'']) {
            return Some(token.trim_matches(['"', '\'']));
        }
        match token {
            "python_version" | "python_full_version" => Some(self.python).filter(|python| !python.is_empty()),
            "sys_platform" => Some("linux"),
            "platform_system" => Some("Linux"),
            "os_name" => Some("posix"),
            "implementation_name" => Some("cpython"),
            "platform_python_implementation" => Some("CPython"),
            "platform_machine" => Some(std::env::consts::ARCH),
            "extra" => Some(""),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_apply_if_their_conditions_are_fulfilled_or_unknown() {
        for requirement in [
            "a",
            "a>=1",
            "a; python_version >= '3.9'",
            "a; python_version>\"3.9\" and sys_platform == 'linux'",
            "a; sys_platform == 'win32' or (python_version < '4' and os_name != 'nt')",
            "a; '3.9' <= python_version",
            "a; python_version not in '2.6 2.7'",
            "a; sys_platform in 'linux linux2'",
            "a; python_version == '3.*'",
            "a; implementation_version < '3'",
            "a; python_version",
            "a; (python_version < '3'",
            "a;",
        ] {
            assert!(applies(requirement, "3.12"), "{requirement}");
        }
        for requirement in [
            "enum34; python_version<'3.4'",
            "a (>=1) ; python_version < \"3.10\"",
            "a; sys_platform == 'win32'",
            "a; platform_system != 'Linux'",
            "a; python_version in '2.6 2.7'",
            "a; extra == 'dev'",
            "a; python_version >= '3' and (os_name == 'nt' or platform_python_implementation == 'PyPy')",
        ] {
            assert!(!applies(requirement, "3.12"), "{requirement}");
        }
        assert!(applies("enum34; python_version<'3.4'", ""));
    }
}
