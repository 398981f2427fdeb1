//! Versions of packages, ordered as in package indexes, and ranges of versions (PEP 440). Implements only the part that
//! choosing a release needs.

use std::cmp::Ordering;

/// A parsed version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    text: String,
    epoch: u64,
    release: Vec<u64>,
    /// Kind and number of the release. Kinds are numbers that ascend from development release over alpha, beta,
    /// candidate and final to post-release. The number in `rc2` is 2; a final release has the number 0.
    stage: (i8, u64),
}

/// Whether a text consists only of characters that versions have. Such a text can be part of a file name or of the name
/// of a tag.
pub(super) fn has_version_characters(text: &str) -> bool {
    !text.contains("..") && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '!' | '-' | '_'))
}

impl Version {
    /// Parses a version; `None` if the text is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if !has_version_characters(text.trim()) {
            return None;
        }
        let lower = text.trim().to_lowercase();
        let plain = lower.split('+').next().unwrap_or_default().trim_start_matches('v');
        let (epoch, plain) =
            plain.split_once('!').map_or((0, plain), |(epoch, rest)| (epoch.parse().unwrap_or(0), rest));
        let end = plain.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(plain.len());
        let release: Option<Vec<u64>> =
            plain[..end].split('.').filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect();
        let mut release = release.filter(|release| !release.is_empty())?;
        while release.len() > 1 && release.last() == Some(&0) {
            release.pop();
        }
        let rest = plain[end..].trim_start_matches(['-', '_', '.']);
        let number = || rest.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
        let starts = |names: &[&str]| names.iter().any(|name| rest.starts_with(name));
        let stage = if rest.is_empty() {
            (0, 0)
        } else if starts(&["post", "r"]) && !starts(&["rc"]) {
            (1, number())
        } else if rest.contains("dev") {
            (-4, number())
        } else if starts(&["rc", "c"]) {
            (-1, number())
        } else if starts(&["b"]) {
            (-2, number())
        } else if starts(&["a"]) {
            (-3, number())
        } else {
            return None;
        };
        Some(Self { text: text.trim().to_owned(), epoch, release, stage })
    }

    /// The version as it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether this is a final release or a post-release, not a preview.
    pub(super) const fn is_stable(&self) -> bool {
        self.stage.0 >= 0
    }

    /// Whether two versions are the same, even if they are written differently.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

/// The versions that a requirement allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VersionRange(Vec<(RangeOperator, Version)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeOperator {
    Equal,
    Unequal,
    AtLeast,
    AtMost,
    Above,
    Below,
    /// At least this version, and equal to it in all parts but the last (`~=`).
    Compatible,
    /// Beginning with the same parts as this version (`==1.2.*`).
    Prefix,
}

impl VersionRange {
    /// Parses what follows the name in a requirement, such as `>=1.2,<2`; `None` if it has another form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        const OPERATORS: [(&str, RangeOperator); 7] = [
            ("~=", RangeOperator::Compatible),
            ("==", RangeOperator::Equal),
            ("!=", RangeOperator::Unequal),
            (">=", RangeOperator::AtLeast),
            ("<=", RangeOperator::AtMost),
            (">", RangeOperator::Above),
            ("<", RangeOperator::Below),
        ];
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let range = parts.map(|part| {
            let (operator, version) =
                OPERATORS.iter().find_map(|(sign, operator)| Some((*operator, part.strip_prefix(sign)?.trim())))?;
            match (operator, version.strip_suffix(".*")) {
                (RangeOperator::Equal, Some(start)) => Some((RangeOperator::Prefix, Version::parse(start)?)),
                (_, Some(_)) => None,
                (operator, None) => Some((operator, Version::parse(version)?)),
            }
        });
        range.collect::<Option<_>>().map(Self)
    }

    /// Whether the range contains a version.
    pub(super) fn allows(&self, version: &Version) -> bool {
        let starts = |parts: &[u64], at: usize| {
            (0..at).all(|place| version.release.get(place).unwrap_or(&0) == parts.get(place).unwrap_or(&0))
        };
        self.0.iter().all(|(operator, bound)| match operator {
            RangeOperator::Equal => version.is(bound),
            RangeOperator::Unequal => !version.is(bound),
            RangeOperator::AtLeast => version >= bound,
            RangeOperator::AtMost => version <= bound,
            RangeOperator::Above => version > bound,
            RangeOperator::Below => version < bound,
            RangeOperator::Compatible => {
                let given = bound.text.split('.').count();
                version >= bound && starts(&bound.release, given.saturating_sub(1))
            }
            RangeOperator::Prefix => starts(&bound.release, bound.text.split('.').count()),
        })
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.epoch, &self.release, self.stage).cmp(&(other.epoch, &other.release, other.stage))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::{Version, VersionRange};

    #[test]
    fn versions_are_ordered_as_package_indexes_order_them() {
        let ordered = ["0.9", "1.0.dev1", "1.0a1", "1.0b2", "1.0rc1", "1.0", "1.0.post1", "1.0.1", "1.10", "2!0.1"];
        let parsed: Vec<Version> = ordered.iter().map(|text| Version::parse(text).unwrap()).collect();
        assert!(parsed.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(Version::parse("1.0").unwrap().is(&Version::parse("1.0.0").unwrap()));
        assert!(!Version::parse("1.0rc1").unwrap().is_stable() && Version::parse("1.0.post1").unwrap().is_stable());
        for text in ["tip", "1.0rc1/../x", "1.0rc1://x", "1..0"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_range_allows_the_versions_between_its_bounds() {
        for (range, inside, outside) in [
            ("<=1,>=0.3.13", vec!["0.3.13", "0.5.12", "1.0"], vec!["0.3.12", "1.0.1"]),
            ("~=1.4.2", vec!["1.4.2", "1.4.9"], vec!["1.4.1", "1.5"]),
            ("==1.2.*", vec!["1.2", "1.2.7"], vec!["1.3"]),
            ("== 1.2, != 1.3", vec!["1.2.0"], vec!["1.3", "1.2.1"]),
            (">1,<2", vec!["1.1"], vec!["1", "2"]),
            ("", vec!["1", "2rc1"], vec![]),
        ] {
            let parsed = VersionRange::parse(range).unwrap();
            let allows = |text: &&str| parsed.allows(&Version::parse(text).unwrap());
            assert!(inside.iter().all(allows) && !outside.iter().any(allows), "{range}");
        }
        for text in ["1.2", "===1", ">=tip", ">=1.*"] {
            assert_eq!(VersionRange::parse(text), None, "{text}");
        }
    }
}
