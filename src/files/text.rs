//! Types that serde stores as text.

/// Makes serde store a type as text, using the type's `FromStr` and `Display`. The type needs the attribute
/// `#[serde(try_from = "String", into = "String")]`.
macro_rules! stored_as_text {
    ($kind:ty) => {
        impl TryFrom<String> for $kind {
            type Error = <Self as std::str::FromStr>::Err;

            fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$kind> for String {
            fn from(value: $kind) -> Self {
                value.to_string()
            }
        }
    };
}
pub(crate) use stored_as_text;
