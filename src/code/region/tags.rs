//! Comments that mark regions: `# <paper2code name="loss">` and `# </paper2code name="loss">`, as in
//! ResearchCodeBench's files, or `# region loss` and `# endregion`, which editors can fold.

use std::ops::Range;

use tree_sitter::Tree;

use super::{Bounds, Region, statements};
use crate::code::extent;
use crate::code::module::Module;
use crate::code::walk;

/// Keyword of the comments that editors fold. Unlike tags, such a comment may also be prose, such as
/// `# region proposals are ranked first`.
const EDITOR: &str = "region";

/// A comment that marks the beginning or end of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tag {
    /// The comment's keyword: `paper2code` or `region`.
    word: String,
    /// The region's name; a closing comment may omit it.
    name: Option<String>,
    opens: bool,
}

/// The two comments around a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TagPair {
    /// The keyword of both comments: `paper2code` or `region`.
    pub word: String,
    /// The region's name.
    pub name: String,
    /// Range of the opening comment.
    pub open: Range<usize>,
    /// Range of the closing comment.
    pub close: Range<usize>,
}

/// Parses a comment. Returns `None` if it does not mark a region.
fn read(comment: &[u8]) -> Option<Tag> {
    let text = std::str::from_utf8(comment).ok()?.trim_start_matches('#').trim();
    let tag = |word: &str, name: Option<&str>, opens: bool| {
        Some(Tag { word: word.to_owned(), name: name.map(str::to_owned), opens })
    };
    if let Some(name) = text.strip_prefix("region ") {
        return tag(EDITOR, Some(name.trim()), true);
    }
    if let Some(rest) = text.strip_prefix("endregion") {
        let name = rest.trim();
        return (rest.is_empty() || rest.starts_with(' '))
            .then(|| tag(EDITOR, (!name.is_empty()).then_some(name), false))?;
    }
    let inner = text.strip_prefix('<')?.strip_suffix('>')?;
    let (inner, opens) = inner.strip_prefix('/').map_or((inner, true), |inner| (inner, false));
    let (word, rest) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
    let is_word =
        !word.is_empty() && word.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-');
    let name =
        rest.trim().strip_prefix("name=\"").and_then(|rest| rest.strip_suffix('"')).filter(|name| !name.contains('"'));
    let fits = is_word && if opens { name.is_some() } else { name.is_some() || rest.trim().is_empty() };
    fits.then(|| tag(word, name, opens))?
}

/// Returns all pairs of comments in a file that mark regions, in the order in which they begin. A comment with the
/// editors' keyword `region` but without a counterpart may be prose, and is ignored. Any other tag without a
/// counterpart is an error: its line, and a message.
pub(super) fn pairs(tree: &Tree, source: &[u8]) -> Result<Vec<TagPair>, (usize, String)> {
    let mut comments = Vec::new();
    statements::each(tree.root_node(), &(0..source.len()), &mut |node| {
        if node.kind() == "comment" && extent::begins_line(source, node.start_byte()) {
            comments.push(node.byte_range());
        }
    });
    comments.sort_by_key(|range| range.start);
    let line = |at: usize| crate::code::encoding::line_of(source, at);
    let (mut open, mut found): (Vec<(Tag, Range<usize>)>, Vec<TagPair>) = (Vec::new(), Vec::new());
    for range in comments {
        let Some(tag) = read(&source[range.clone()]) else { continue };
        if tag.opens {
            open.push((tag, range));
            continue;
        }
        let is_editor = tag.word == EDITOR;
        let mate = open.iter().rposition(|(other, _)| {
            other.word == tag.word && (!is_editor || tag.name.is_none() || other.name == tag.name)
        });
        let Some((first, opened)) = mate.map(|place| open.remove(place)) else {
            if is_editor {
                continue;
            }
            return Err((line(range.start), "this comment closes a region that none opens".to_owned()));
        };
        let name = first.name.unwrap_or_default();
        if let Some(other) = tag.name.filter(|other| *other != name) {
            return Err((line(range.start), format!("`{other}` is closed where `{name}` is open")));
        }
        found.push(TagPair { word: tag.word, name, open: opened, close: range });
    }
    if let Some((tag, range)) = open.iter().find(|(tag, _)| tag.word != EDITOR) {
        return Err((
            line(range.start),
            format!("the region `{}` is never closed", tag.name.as_deref().unwrap_or_default()),
        ));
    }
    found.sort_by_key(|pair| pair.open.start);
    Ok(found)
}

/// A region that is marked by a pair of comments.
#[derive(Debug)]
pub struct TaggedRegion {
    /// The keyword of the two comments: `region`, or the first word of a tag, such as `paper2code`.
    pub word: String,
    /// The region's name, as in its opening comment.
    pub name: String,
    /// Number (from 1) among the regions of that name; `None` if there is only one.
    pub number: Option<usize>,
    /// Line (from 1) of the opening comment.
    pub line: usize,
    /// The region, or why these comments do not mark a valid region.
    pub region: crate::error::Result<Region>,
}

/// Returns all regions of a file that are marked by pairs of comments, in the order in which they begin.
///
/// # Errors
/// Returns an error of kind `Suite` if a tag that opens or closes a region has no matching tag.
pub fn tagged(module: &Module) -> crate::error::Result<Vec<TaggedRegion>> {
    let readable = module.encoding.readable(module.source());
    let tree = walk::parse(&readable)
        .ok_or_else(|| crate::error::Error::internal("the file could be parsed once, but not a second time"))?;
    let pairs = pairs(&tree, &readable)
        .map_err(|(line, what)| crate::error::Error::suite(what).at(module.path(), Some(line)))?;
    let of_name = |name: &str, before: usize| pairs[..before].iter().filter(|pair| pair.name == name).count();
    let tagged = pairs.iter().enumerate().map(|(place, pair)| {
        let several = of_name(&pair.name, pairs.len()) > 1;
        let number = several.then(|| of_name(&pair.name, place) + 1);
        let region = module.region(None, Bounds::Tag { name: &pair.name, number });
        TaggedRegion {
            word: pair.word.clone(),
            name: pair.name.clone(),
            number,
            line: crate::code::encoding::line_of(&readable, pair.open.start),
            region,
        }
    });
    Ok(tagged.collect())
}
