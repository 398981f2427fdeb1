//! Python sources: functions, calls, masking, mutants, similarity. Parses with tree-sitter and is independent of
//! papers.
//!
//! Masking alone, on any source:
//!
//! ```
//! use autoexperiment::code::{MaskTarget, Module};
//!
//! let source = b"class Scale:\n    def apply(self, x):\n        return 2 * x\n\ndef keep():\n    return 1\n";
//! let module = Module::parse("scale.py", source.to_vec())?;
//! let function = module.find("Scale.apply")?;
//! let masked = module.mask_checked(&[MaskTarget { function, description: Some("Twice x.") }])?;
//! assert_eq!(
//!     String::from_utf8_lossy(&masked),
//!     "class Scale:\n    def apply(self, x):\n        \"\"\"Twice x.\"\"\"\n        raise NotImplementedError\n\n\
//!      def keep():\n    return 1\n"
//! );
//! # Ok::<(), autoexperiment::error::Error>(())
//! ```
//!
//! A file's bytes are parsed once, into a [`Module`] that records the offsets of every function's parts. Masking
//! replaces bytes at those offsets ([`Module::mask`]); the result is parsed only to check it
//! ([`Module::mask_checked`]). A [`Selector`] is a function's name as users write it, and a [`FunctionRow`] describes a
//! function in listings. Listing the functions of a repo takes hardly longer than tree-sitter itself (7 MB/s on one
//! core, measured by `cargo bench --bench masking`), so [`index_tree`] uses all threads. `CodeTokens` and `containment`
//! measure how much of a function another text contains.

mod case;
mod detail;
mod docstring;
mod encoding;
mod extent;
mod function;
mod joined;
mod mask;
mod module;
mod mutate;
mod passing;
mod region;
mod selector;
mod sibling;
mod similarity;
mod splice;
mod tokens;
mod tree;
mod walk;

pub(crate) use case::Cases;
pub(crate) use detail::{Detail, DetailKind, one_spaced};
pub use function::Function;
pub(crate) use function::last_part;
pub use mask::{MaskTarget, MaskedPart, MaskedText};
pub use module::Module;
pub use mutate::{Mutant, MutantKind, choose};
pub use region::{Bounds, Region};
pub(crate) use region::{TaggedRegion, tagged};
pub(crate) use selector::{Selector, region_name};
pub(crate) use similarity::{Identifiers, SHINGLE, containment};

pub(crate) use tokens::CodeTokens;
pub use tree::index_tree;
pub(crate) use tree::{FunctionRow, each_module};
