//! Takes statements from a model's reply and puts them in place of a region (consecutive statements that were masked).
//!
//! The reply may contain only the statements, the whole function, or its body. If the function in the reply is
//! unchanged before and after the region, only the part in between is used. Otherwise the whole function is replaced.

use std::collections::BTreeSet;
use std::ops::Range;

use tree_sitter::{Node, Tree};

use super::additions::NeededNames;
use super::lines::{CodeLine, body_lines};
use super::names::{self, bound_in, is_definition, mentioned, needed};
use super::reply::{self, plain};
use super::taken::{FunctionFromReply, ReplyCode, bare_body, parameter_names, with_header};
use super::{SplicedFile, line_before, methods};
use crate::code::function::{Function, last_part};
use crate::code::module::Module;
use crate::code::walk;

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
            return Err("the statement in place of the missing part was removed".to_owned());
        }
        let header = function.map_or_else(|| ANY.to_owned(), |index| self.header(index));
        let of_function = function.and_then(|index| {
            let taken = self.take(&self.functions()[index], index, reply);
            // Ignore a function of another name: it is not the whole function, but a part of the missing statements.
            taken.ok().filter(|taken| taken.defines(&self.functions()[index])).map(|taken| (index, taken))
        });
        if let Some((index, taken)) = of_function {
            let lines = body_lines(&taken);
            return match self.between(index, at, &lines) {
                Some(middle) => self.put_lines(function, at, middle, &taken, &part),
                None => self.splice(index, reply),
            };
        }
        let candidates = reply::candidates(reply);
        // A block that mentions the function may be an example of how to call it.
        let is_example = |text: &String| {
            name.zip(ReplyCode::parse(text).ok())
                .is_some_and(|(name, code)| mentioned(&code.tree, &code.text, &(0..text.len())).contains(name))
        };
        let (examples, blocks): (Vec<&String>, Vec<&String>) = candidates.iter().partition(|text| is_example(text));
        let statements = (blocks.into_iter().chain(examples))
            .find_map(|text| Some(statements(text, &header)?.with_other_code(&candidates, text)));
        let Some(taken) = statements else {
            let fault = candidates.iter().find_map(|text| ReplyCode::parse(&with_header(ANY, text)).err());
            // If the whole reply is the only candidate, the reply may be prose. Then do not report why it is not valid
            // Python.
            let fault = fault.filter(|_| candidates.len() > 1).map(|what| format!("{part} {what}"));
            return Err(fault.unwrap_or_else(|| format!("the reply holds no Python code of {part}")));
        };
        let lines = body_lines(&taken);
        let middle = function.and_then(|index| self.between(index, at, &lines)).unwrap_or(&lines);
        self.put_lines(function, at, middle, &taken, &part)
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

    /// Returns the file with `lines` in place of the range `at`. The lines are from `taken`. Also adds the imports,
    /// helpers and methods from the reply that the lines need.
    fn put_lines(
        &self,
        function: Option<usize>,
        at: &Range<usize>,
        lines: &[CodeLine<'_>],
        taken: &FunctionFromReply,
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
        let place = |line: &CodeLine<'_>| {
            let cut = line.text.strip_prefix(shared).unwrap_or(line.text.trim_start());
            CodeLine { text: if line.in_string { line.text } else { cut }, ..*line }.place(indent)
        };
        let old = function.map(|index| &self.functions()[index]);
        let siblings = old.map_or_else(Vec::new, |old| self.siblings(old, taken));
        let wanted = self.needed_by_lines(old, at, lines, taken, &siblings)?;
        let before = old.map_or(at.start, |old| old.whole.start);
        let additions = self.additions(taken, wanted, before, indent, &ending)?;
        let text: Vec<String> = additions.in_function.into_iter().chain(lines.iter().map(place)).collect();
        let mut edits = vec![(at.clone(), self.encoded(&text.join(&ending))?)];
        edits.extend(additions.edits);
        if let Some(old) = old.filter(|_| !siblings.is_empty()) {
            let outer = reply::indent_of(line_before(self.source(), old.header.start));
            let text = methods(taken, &siblings, outer, &ending);
            edits.push((old.body.end..old.body.end, self.encoded(&text)?));
        }
        let mut added = taken.names_of(&siblings);
        added.extend(additions.names);
        let spliced = SplicedFile { bytes: Vec::new(), added, new_signature: false, edits };
        self.proved(spliced, old.map(Function::label).as_deref())
    }

    /// Returns the names that `lines` of the reply's function and its new `siblings` need, without the names that the
    /// file's function `old` binds outside of the region. `rebindable` leaves out names that `old` uses outside of the
    /// region, because that code needs their old meaning. It is empty for a region outside of functions.
    fn needed_by_lines(
        &self,
        old: Option<&Function>,
        at: &Range<usize>,
        lines: &[CodeLine<'_>],
        taken: &FunctionFromReply,
        siblings: &[usize],
    ) -> Result<NeededNames, String> {
        let code = &taken.code;
        let start = lines.first().map_or(0, |line| line.start);
        let last = lines.last().map_or(0, |line| line.start);
        let end = code.text[last..].find('\n').map_or(code.text.len(), |length| last + length);
        let used = mentioned(&code.tree, &code.text, &(start..end));
        let mut all = needed(&code.tree, &code.text, &taken.function().whole);
        all.retain(|name| used.contains(name));
        let mut variables = taken.variables();
        let mut rebindable = BTreeSet::new();
        if let Some(old) = old {
            let (tree, text) = self.without_region(at)?;
            variables.extend(bound_in(&tree, &text, &(old.header.end..old.body.end)));
            variables.extend(parameter_names(&self.encoding.text(&self.source()[old.header.clone()])));
            all.retain(|name| !variables.contains(name));
            rebindable = all.difference(&mentioned(&tree, &text, &old.whole)).cloned().collect();
        }
        for &sibling in siblings {
            all.extend(needed(&code.tree, &code.text, &code.module.functions()[sibling].whole));
        }
        Ok(NeededNames { all, rebindable, variables })
    }

    /// Parses the file with a number in place of the region at `at`, so that the region's own names do not count: the
    /// region may contain the code of an earlier reply. All offsets stay the same.
    fn without_region(&self, at: &Range<usize>) -> Result<(Tree, String), String> {
        let mut bytes = self.encoding.readable(self.source()).into_owned();
        let first = at.start + bytes[at.clone()].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        for (place, byte) in bytes[first..at.end].iter_mut().enumerate() {
            *byte = if place == 0 { b'0' } else { b' ' };
        }
        let tree = walk::parse(&bytes).ok_or("the file does not parse")?;
        let text = names::text_of(&bytes).into_owned();
        Ok((tree, text))
    }
}

/// Parses a text of statements as the body of a function with this header. Refuses a text whose statements do nothing,
/// because it may be prose: a single word also parses as a statement.
fn statements(text: &str, header: &str) -> Option<FunctionFromReply> {
    if let Some(taken) = bare_body(text, header) {
        return Some(taken);
    }
    let code = ReplyCode::parse(&with_header(header, text)).ok()?;
    acts_alone(&code.tree).then(|| FunctionFromReply::new(code, 0, true))
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
        "comment" | "pass_statement" => false,
        "expression_statement" => statement.named_child(0).is_some_and(|inner| {
            matches!(
                inner.kind(),
                "assignment" | "augmented_assignment" | "call" | "yield" | "await" | "named_expression"
            )
        }),
        _ => !is_definition(statement),
    };
    root.named_child_count() == 1 && body.named_children(&mut cursor).any(acts)
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
    fn only_names_that_the_new_statements_need_are_added() {
        let with_import = |lines: &str| with(lines).replacen("import math", "import math\nimport numpy as np", 1);
        let body = "    total = 0\n    for x in xs:\n        data = x * x\n        total += data\n    return total\n";
        let function = format!("import numpy as np\ndata = np.loadtxt(\"x.csv\")\n\n@np.vectorize\ndef f(xs):\n{body}");
        assert_eq!(text(&function).unwrap(), with("        data = x * x\n        total += data\n"));
        // From the reply's other block, only the import is added. Left out are the assignments to `x`, a variable of
        // the function, and to `y`, which is computed from `x`.
        let statements = "```python\ntotal += np.square(x) + y\n```";
        for other in ["import numpy as np", "import numpy as np\nx = [1, 2]", "import numpy as np\ny = x * x"] {
            let reply = format!("```python\n{other}\n```\n{statements}");
            assert_eq!(text(&reply).unwrap(), with_import("        total += np.square(x) + y\n"), "{other}");
        }
    }

    #[test]
    fn a_new_method_that_the_statements_call_is_added_after_the_function() {
        let source = "class A:\n    def f(self, xs):\n        total = 0\n        for x in xs:\n            total += x\n        return total\n\n    def g(self):\n        return 1\n";
        let module = Module::parse("m.py", source.into()).unwrap();
        let bounds = Bounds::Statements { first: "total +=", last: None, number: None };
        let region = module.region(Some(0), bounds).unwrap();
        let masked = module.cut_checked(&[MaskedPart::Region(&region)]).unwrap();
        let (module, at) = (Module::parse("m.py", masked.bytes).unwrap(), masked.stand_ins[0].clone());
        let method = "    def _half(self, x):\n        return np.half(x)\n";
        let whole = source
            .replace("total += x", "total += self._half(x)")
            .replace("    def g", &format!("{method}\n    def g"));
        let spliced = module.splice_region(Some(0), &at, &format!("import numpy as np\n\n{whole}")).unwrap();
        let now = spliced.moved(&at).unwrap();
        assert_eq!(&spliced.bytes[now], b"            total += self._half(x)");
        assert_eq!(spliced.added, ["_half", "np"]);
        assert_eq!(String::from_utf8(spliced.bytes).unwrap(), format!("import numpy as np\n{whole}"));
    }

    #[test]
    fn a_clashing_import_is_put_into_the_region_unless_the_function_uses_the_files_import() {
        let source =
            "import time\n\n\ndef f(xs):\n    for x in xs:\n        raise NotImplementedError\n    return xs\n";
        let reply = "```python\nfrom time import time\n```\n```python\nxs[0] = time()\n```";
        let splice = |source: &str, at: &Range<usize>| {
            let module = Module::parse("m.py", source.into()).unwrap();
            let spliced = module.splice_region(Some(0), at, reply).unwrap();
            let now = spliced.moved(at).unwrap();
            (String::from_utf8(spliced.bytes).unwrap(), now)
        };
        let range = |source: &str| {
            let stand_in = "        raise NotImplementedError";
            let start = source.find(stand_in).unwrap();
            start..start + stand_in.len()
        };
        let expected = source.replace("raise NotImplementedError", "from time import time\n        xs[0] = time()");
        let (first, now) = splice(source, &range(source));
        assert_eq!(first, expected);
        // A second reply replaces both the statements and the import that the first reply put into the region.
        assert_eq!(splice(&first, &now).0, expected);
        let other = source.replace("return xs", "return xs, time.time()");
        let expected = other.replace("raise NotImplementedError", "xs[0] = time()");
        assert_eq!(splice(&other, &range(&other)).0, expected);
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
