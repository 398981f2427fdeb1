//! Takes statements from a model's reply and puts them in place of a region (consecutive statements that were masked).
//!
//! The reply may contain only the statements, the whole function, or its body. If the function in the reply is
//! unchanged before and after the region, only the part in between is used. Otherwise the whole function is replaced.

use std::ops::Range;

use tree_sitter::{Node, Tree};

use super::{CodeLine, FunctionFromReply, SplicedFile, bare_body, body_lines, mentioned, parsed, reply};
use crate::code::function::last_part;
use crate::code::module::Module;

/// Header that is put above statements to parse them as a function, if the region is not in a function.
const ANY: &str = "def statements():";

impl SplicedFile {
    /// Returns the new position of a range of the old bytes, after the edits. If an edit replaced exactly this range,
    /// returns the range of the replacement. Returns `None` if an edit replaced a part of the range, or more than the
    /// range.
    #[must_use]
    pub fn moved(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let (mut grown, mut shrunk) = (0, 0);
        for (edited, text) in &self.edits {
            if edited == range {
                let start = range.start + grown - shrunk;
                return Some(start..start + text.len());
            }
            if edited.end <= range.start {
                grown += text.len();
                shrunk += edited.len();
            } else if edited.start < range.end {
                return None;
            }
        }
        Some(range.start + grown - shrunk..range.end + grown - shrunk)
    }
}

impl Module {
    /// Returns the file with the reply's statements in place of the range `at`, which is the region or its mask.
    /// `function` is the function around the region, as an index into [`Module::functions`].
    ///
    /// # Errors
    /// Returns a message for the model if the reply has no statements or if they do not fit.
    pub fn splice_region(
        &self,
        function: Option<usize>,
        at: &Range<usize>,
        reply: &str,
    ) -> Result<SplicedFile, String> {
        let name = function.map(|index| last_part(&self.functions()[index].name));
        let part = name.map_or_else(|| "the missing part".to_owned(), |name| format!("the missing part of `{name}`"));
        if at.end > self.source().len() {
            return Err("what stands for the missing part is gone".to_owned());
        }
        let header = function.map_or_else(|| ANY.to_owned(), |index| self.header(index));
        let of_function = function.and_then(|index| {
            let taken = self.take(&self.functions()[index], index, reply);
            // A function of another name is part of what is missing.
            let is_whole =
                |taken: &FunctionFromReply| !taken.bare && taken.name() == last_part(&self.functions()[index].name);
            taken.ok().filter(is_whole).map(|taken| (index, taken))
        });
        if let Some((index, taken)) = of_function {
            let lines = own_lines(&taken);
            return match self.between(index, at, &lines) {
                Some(middle) => self.put_lines(function, at, middle, Some(&taken), &part),
                None => self.splice(index, reply),
            };
        }
        let candidates = reply::candidates(reply);
        let statements = candidates.iter().find_map(|text| statements(text, &header));
        let Some(taken) = statements else {
            let fault = candidates.iter().find_map(|text| parsed(&format!("{ANY}\n{}", indented(text))).err());
            // If the whole reply is the only candidate, the reply may be prose. Then do not report why it is not valid
            // Python.
            let fault = fault.filter(|_| candidates.len() > 1).map(|what| format!("{part} {what}"));
            return Err(fault.unwrap_or_else(|| format!("the reply holds no Python code of {part}")));
        };
        let lines = own_lines(&taken);
        let middle = function.and_then(|index| self.between(index, at, &lines)).unwrap_or(&lines);
        self.put_lines(function, at, middle, None, &part)
    }

    /// Returns the lines of a new body that replace the region, if the lines before and after them are those of the old
    /// function. Returns `None` if the new body begins or ends differently.
    fn between<'lines, 'text>(
        &self,
        function: usize,
        at: &Range<usize>,
        lines: &'lines [CodeLine<'text>],
    ) -> Option<&'lines [CodeLine<'text>]> {
        let code = self.body_code(function);
        let own = |range: Range<usize>| -> Vec<String> {
            let text = self.encoding.text(&self.source()[range]);
            text.lines().map(plain).filter(|line| !line.is_empty()).map(str::to_owned).collect()
        };
        let (before, behind) = (own(code.start.min(at.start)..at.start), own(at.end..code.end.max(at.end)));
        let theirs: Vec<(usize, &str)> =
            lines.iter().map(|line| plain(line.text)).enumerate().filter(|it| !it.1.is_empty()).collect();
        let inside = theirs.len().checked_sub(before.len() + behind.len()).filter(|inside| *inside > 0)?;
        let same = |own: &[String], theirs: &[(usize, &str)]| own.iter().zip(theirs).all(|(own, it)| own == it.1);
        let end = before.len() + inside;
        if !same(&before, &theirs) || !same(&behind, &theirs[end..]) {
            return None;
        }
        lines.get(theirs[before.len()].0..=theirs[end - 1].0)
    }

    /// Returns the file with `lines` in place of the range `at`. If the lines come from `whole`, a function in the
    /// reply, also adds the imports and helpers from the reply that this function needs.
    fn put_lines(
        &self,
        function: Option<usize>,
        at: &Range<usize>,
        lines: &[CodeLine<'_>],
        whole: Option<&FunctionFromReply>,
        part: &str,
    ) -> Result<SplicedFile, String> {
        let mut code = lines.iter().map(|line| plain(line.text)).filter(|line| !line.is_empty());
        let only = code.next().filter(|_| code.next().is_none());
        if lines.is_empty()
            || only.is_some_and(|line| matches!(line, "pass" | "...") || line.starts_with("raise NotImplementedError"))
        {
            return Err(format!("{part} has no code"));
        }
        let ending = String::from_utf8_lossy(crate::code::extent::line_ending(self.source(), at.start)).into_owned();
        let first = String::from_utf8_lossy(&self.source()[at.clone()]).into_owned();
        let indent = reply::indent_of(&first);
        let shared =
            lines.iter().find(|line| !line.text.trim().is_empty()).map_or("", |line| reply::indent_of(line.text));
        // Statements that the reply gives without a function were indented by four spaces to parse them. Remove these
        // spaces also inside strings of several lines.
        let wrapped = if whole.is_none() { "    " } else { "" };
        let place = |line: &CodeLine<'_>| {
            let text = if line.in_string {
                line.text.strip_prefix(wrapped).unwrap_or(line.text)
            } else {
                line.text.strip_prefix(shared).unwrap_or(line.text.trim_start())
            };
            CodeLine { text, in_string: line.in_string }.place(indent)
        };
        let text = lines.iter().map(place).collect::<Vec<_>>().join(&ending);
        let mut edits = vec![(at.clone(), self.encoded(&text)?)];
        let mut added = Vec::new();
        if let (Some(taken), Some(index)) = (whole, function) {
            let new = &taken.module.functions()[taken.function];
            let wanted = mentioned(&taken.tree, &taken.text, &(new.whole.start..new.body.end));
            self.add_needed(&self.functions()[index], taken, wanted, &ending, &mut edits, &mut added)?;
        }
        let spliced = SplicedFile { bytes: Vec::new(), added, new_signature: false, edits };
        self.proved(spliced, function.map(|index| self.functions()[index].label()).as_deref())
    }
}

/// Returns the lines of a body without the header's line. The indentation that all lines share is removed.
fn own_lines(taken: &FunctionFromReply) -> Vec<CodeLine<'_>> {
    let code = taken.module.body_code(taken.function);
    let base = String::from_utf8_lossy(&taken.module.functions()[taken.function].indent).into_owned();
    body_lines(taken, &code, &base)
}

/// Removes a line's indentation and comment. If a line contains quotes, its comment is kept, because `#` may be part of
/// a string.
fn plain(line: &str) -> &str {
    let line = line.trim();
    let end = line.find('#').filter(|&at| !line[..at].contains(['"', '\'']));
    end.map_or(line, |end| line[..end].trim_end())
}

/// Parses a text of statements as the body of a function with this header. Refuses a text whose statements do nothing,
/// because it may be prose: a single word also parses as a statement.
fn statements(text: &str, header: &str) -> Option<FunctionFromReply> {
    if let Some(taken) = bare_body(text, header) {
        return Some(taken);
    }
    let whole = format!("{header}\n{}", indented(text));
    let (module, tree) = parsed(&whole).ok()?;
    acts_alone(&tree).then_some(FunctionFromReply {
        module,
        tree,
        text: whole,
        function: 0,
        bare: true,
        others: Vec::new(),
    })
}

/// Whether a file consists of a single function whose body contains a statement with an effect, such as an assignment,
/// a call or a `return`.
fn acts_alone(tree: &Tree) -> bool {
    let root = tree.root_node();
    let Some(body) = root.named_child(0).and_then(|function| function.child_by_field_name("body")) else {
        return false;
    };
    let mut cursor = body.walk();
    let acts = |statement: Node<'_>| match statement.kind() {
        "function_definition" | "class_definition" | "decorated_definition" | "comment" | "pass_statement" => false,
        "expression_statement" => statement.named_child(0).is_some_and(|inner| {
            matches!(
                inner.kind(),
                "assignment" | "augmented_assignment" | "call" | "yield" | "await" | "named_expression"
            )
        }),
        _ => true,
    };
    root.named_child_count() == 1 && body.named_children(&mut cursor).any(acts)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| if line.trim().is_empty() { "\n".to_owned() } else { format!("    {line}\n") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Bounds, MaskedPart};

    const FILE: &str = "import math\n\n\ndef f(xs):\n    \"\"\"Doc.\"\"\"\n    total = 0\n    for x in xs:\n        y = x * x\n        total += y  # sum\n    return total\n";

    /// Returns `FILE` with the body of its loop masked, and the range of the mask.
    fn masked() -> (Module, Range<usize>) {
        let module = Module::parse("m.py", FILE.into()).unwrap();
        let bounds = Bounds::Statements { first: "y = x", last: Some("total"), number: None };
        let region = module.region(Some(0), bounds).unwrap();
        let masked = module.cut_checked(&[MaskedPart::Region(&region)]).unwrap();
        (Module::parse("m.py", masked.bytes).unwrap(), masked.stand_ins[0].clone())
    }

    fn text(reply: &str) -> Result<String, String> {
        let (module, at) = masked();
        let spliced = module.splice_region(Some(0), &at, reply)?;
        Ok(String::from_utf8(spliced.bytes).unwrap())
    }

    fn with(lines: &str) -> String {
        FILE.replacen("        y = x * x\n        total += y  # sum\n", lines, 1)
    }

    #[test]
    fn a_reply_may_hold_the_statements_alone_or_the_whole_function_or_its_whole_body() {
        let wanted = with("        square = x ** 2\n        total += square\n");
        for reply in [
            "```python\nsquare = x ** 2\ntotal += square\n```",
            "        square = x ** 2\n        total += square",
            "The code:\n```\n    square = x ** 2\n    total += square\n```\nIt squares.",
            "```python\ndef f(xs):\n    total = 0\n    for x in xs:\n        square = x ** 2\n        total += square\n    return total\n```",
            "```python\ndef f(xs):\n  \"\"\"Mine.\"\"\"\n  total = 0  \n  # loop\n  for x in xs:\n    square = x ** 2\n    total += square\n\n  return total\n```",
            "```python\ntotal = 0\nfor x in xs:\n    square = x ** 2\n    total += square\nreturn total\n```",
        ] {
            assert_eq!(text(reply).unwrap(), wanted, "{reply}");
        }
    }

    #[test]
    fn a_reply_that_differs_outside_the_region_replaces_the_whole_function() {
        let reply = "```python\nimport numpy as np\n\ndef f(xs):\n    return np.sum(np.square(xs))\n```";
        assert_eq!(
            text(reply).unwrap(),
            "import math\nimport numpy as np\n\n\ndef f(xs):\n    \"\"\"Doc.\"\"\"\n    return np.sum(np.square(xs))\n"
        );
        let (module, at) = masked();
        let spliced = module.splice_region(Some(0), &at, reply).unwrap();
        assert_eq!(spliced.moved(&at), None, "the region is gone with the function");
        let imports = "```python\nimport numpy as np\ndef f(xs):\n    total = 0\n    for x in xs:\n        total += np.square(x)\n    return total\n```";
        let spliced = module.splice_region(Some(0), &at, imports).unwrap();
        let now = spliced.moved(&at).unwrap();
        assert_eq!(&spliced.bytes[now], b"        total += np.square(x)");
        assert_eq!(spliced.added, ["np"]);
    }

    #[test]
    fn indenting_a_reply_keeps_multi_line_strings_and_statements_such_as_break_are_accepted() {
        let reply = "```python\nif x:\n    t = \"\"\"a\n  b\"\"\"\ntotal += x\n```";
        assert_eq!(
            text(reply).unwrap(),
            with("        if x:\n            t = \"\"\"a\n  b\"\"\"\n        total += x\n")
        );
        assert_eq!(text("```python\nbreak\n```").unwrap(), with("        break\n"));
        assert_eq!(text("assert x").unwrap(), with("        assert x\n"));
    }

    #[test]
    fn a_reply_without_statements_is_refused_with_the_reason() {
        assert_eq!(
            text("I would rather not.").unwrap_err(),
            "the reply holds no Python code of the missing part of `f`"
        );
        assert_eq!(text("Sure").unwrap_err(), "the reply holds no Python code of the missing part of `f`");
        assert_eq!(
            text("```python\nraise NotImplementedError\n```").unwrap_err(),
            "the missing part of `f` has no code"
        );
        assert!(text("```python\ny = (x\n```").unwrap_err().starts_with("the missing part of `f` does not parse"));
        let masked = String::from_utf8(masked().0.source().to_vec()).unwrap();
        assert_eq!(text(&format!("```python\n{masked}```")).unwrap_err(), "the missing part of `f` has no code");
    }

    #[test]
    fn a_byte_range_is_shifted_by_earlier_edits_and_lost_if_an_edit_with_other_bounds_overlaps() {
        let edits = vec![(0..0, b"ab".to_vec()), (4..8, b"x".to_vec()), (20..24, Vec::new())];
        let spliced = SplicedFile { bytes: Vec::new(), added: Vec::new(), new_signature: false, edits };
        assert_eq!(spliced.moved(&(1..3)), Some(3..5));
        assert_eq!(spliced.moved(&(4..8)), Some(6..7));
        assert_eq!(spliced.moved(&(9..12)), Some(8..11));
        assert_eq!(spliced.moved(&(5..7)), None);
        assert_eq!(spliced.moved(&(18..26)), None);
    }
}
