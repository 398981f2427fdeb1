//! File names made from other names that may be too long for a file system.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// Maximum bytes of a name. File systems allow 255; the difference leaves room for file extensions.
const LONGEST: usize = 220;
/// Number of hex digits that are appended to distinguish names with the same beginning.
const DIGITS: usize = 16;
/// Separator between the beginning of a long name and the digits of its digest.
const MARK: char = '~';

/// Returns the name if it is short enough; otherwise its beginning, followed by a digest of the whole name.
pub fn bounded(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST {
        return name.into();
    }
    let mut end = LONGEST - DIGITS - MARK.len_utf8();
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let digest = super::hex(&Sha256::digest(name.as_bytes()));
    format!("{}{MARK}{}", &name[..end], &digest[..DIGITS]).into()
}

/// Whether a file's name may be the shortened form of a longer name.
pub fn may_be_bounded(name: &str) -> bool {
    let head = name.len().checked_sub(DIGITS).and_then(|head| name.get(..head));
    // `bounded` cuts at a character boundary, so a shortened name may be up to three bytes shorter than `LONGEST`.
    name.len() + 3 >= LONGEST && head.is_some_and(|head| head.ends_with(MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_made_from_names_of_any_length_fit_the_length_limit_and_stay_distinct() {
        assert_eq!(bounded("react+paper=none"), "react+paper=none");
        let long = "sample_1,2,".repeat(30);
        let (one, two) = (format!("{long}3"), format!("{long}4"));
        assert_ne!(bounded(&one), bounded(&two));
        assert_eq!((bounded(&one).len(), may_be_bounded(&bounded(&one))), (LONGEST, true));
        let wide = "ü".repeat(200);
        assert!(bounded(&wide).len() <= LONGEST && may_be_bounded(&bounded(&wide)));
        assert!(!may_be_bounded("react~0123456789abcdef") && !may_be_bounded(&"x".repeat(LONGEST)));
    }
}
