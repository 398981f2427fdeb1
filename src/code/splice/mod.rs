//! Splicing: takes a function from a model's reply and puts it into a file in place of the old function.
//!
//! The reply may be a whole file, the function, its class, or only its body, with or without fences, indented in any
//! way, and surrounded by prose. The new body is always used. The new signature and decorators are used only if the
//! parameters have changed. Imports and helpers from the reply are added only if the new code mentions them and the
//! file lacks them. The function's docstring and the rest of the file stay byte for byte: a splice is one replaced
//! range and a list of insertions, and the result must parse.

mod names;
mod region;
mod reply;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use tree_sitter::Tree;

use super::function::{Function, last_part};
use super::module::Module;
use super::walk;
use names::{Binding, BindingKind, attributes_of, mentioned, needed, offered, parameters};

/// A file into which a model's function was spliced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplicedFile {
    /// The file's new bytes.
    pub bytes: Vec<u8>,
    /// Names of the imports and helpers that were added.
    pub added: Vec<String>,
    /// Whether the signature comes from the reply.
    pub new_signature: bool,
    /// Ranges of the old bytes and their replacements, in order and without overlaps.
    pub edits: Vec<(Range<usize>, Vec<u8>)>,
}

/// The wanted function, as found in a reply.
struct FunctionFromReply {
    module: Module,
    tree: Tree,
    text: String,
    function: usize,
    /// Whether the reply contained only the body, and this program wrote the header in `text`.
    bare: bool,
    /// The reply's other code, which may have imports and helpers.
    others: Vec<(Tree, String)>,
}

impl FunctionFromReply {
    /// The function's name in the reply, without its class.
    fn name(&self) -> &str {
        last_part(&self.module.functions()[self.function].name)
    }
}

impl Module {
    /// Returns the file with the reply's version of `function`, an index into [`Module::functions`].
    ///
    /// # Errors
    /// Returns a message for the model if the reply does not contain the function, or if the function
    /// contains no code or does not parse.
    pub fn splice(&self, function: usize, reply: &str) -> Result<SplicedFile, String> {
        let old = self.functions().get(function).ok_or("there is no such function in the file")?;
        let taken = self.take(old, function, reply)?;
        let spliced = self.put(old, function, &taken)?;
        self.proved(spliced, Some(&old.label()))
    }

    /// Applies the edits, and checks that the result parses and contains the function called `label`.
    fn proved(&self, mut spliced: SplicedFile, label: Option<&str>) -> Result<SplicedFile, String> {
        spliced.edits.sort_by_key(|(range, _)| (range.start, range.end));
        spliced.bytes = apply(self.source(), &spliced.edits);
        let after = Self::parse(self.path(), spliced.bytes.clone())
            .map_err(|error| format!("the code does not fit into the file: {error}"))?;
        if let Some(label) = label {
            after
                .find(label)
                .map_err(|_| format!("with the code in it, the file no longer has exactly one `{label}`"))?;
        }
        Ok(spliced)
    }

    fn take(&self, old: &Function, function: usize, reply: &str) -> Result<FunctionFromReply, String> {
        let name = last_part(&old.name);
        let class = old.class.as_deref().map(last_part);
        // Small models write `def Class.method(`, because the prompt names the method in this way.
        let dotted = format!("def {}(", old.name);
        let candidates: Vec<String> =
            reply::candidates(reply).iter().map(|text| text.replace(&dotted, &format!("def {name}("))).collect();
        let mut fault = None;
        let mut found = Vec::new();
        let others = self.other_classes(old);
        let mut elsewhere = None;
        for candidate in &candidates {
            let parts = [
                Some(candidate.clone()),
                reply::without_last_definition(candidate),
                reply::lines_of(candidate, name, class),
            ];
            for text in parts.into_iter().flatten() {
                match parsed(&text) {
                    Ok((module, tree)) => match best(module.functions(), old, &others) {
                        Ok(function) => {
                            found.push(FunctionFromReply {
                                module,
                                tree,
                                text,
                                function,
                                bare: false,
                                others: Vec::new(),
                            });
                            break;
                        }
                        Err(class) => elsewhere = elsewhere.or(class),
                    },
                    Err(what) if reply::lines_of(&text, name, class).is_some() => fault = Some(what),
                    Err(_) => {}
                }
            }
        }
        let mut empty = None;
        for taken in found {
            match no_code(&taken) {
                None => return Ok(FunctionFromReply { others: other_code(&candidates, &taken.text), ..taken }),
                Some(what) => empty = Some(what.to_owned()),
            }
        }
        let elsewhere = elsewhere.map(|class| format!("is written as a method of another class, `{class}`"));
        if let Some(what) = empty.or(fault).or(elsewhere) {
            return Err(format!("`{name}` {what}"));
        }
        let own = parameters(&self.header(function)).unwrap_or_default();
        let header = self.header(function);
        for candidate in &candidates {
            let renamed = self.renamed(candidate, &own);
            if let Some(taken) = renamed.or_else(|| bare_body(candidate, &header)).filter(|it| no_code(it).is_none()) {
                return Ok(taken);
            }
        }
        Err(format!("the reply holds no Python code of `{name}`"))
    }

    /// Returns the names of the file's classes that have methods, except the class of `old`. Of a nested class `A.B`,
    /// only `B` is returned.
    fn other_classes(&self, old: &Function) -> BTreeSet<&str> {
        let own = old.class.as_deref().map(last_part);
        self.functions()
            .iter()
            .filter_map(|it| it.class.as_deref().map(last_part))
            .filter(|class| own != Some(class))
            .collect()
    }

    /// Finds the wanted function if the model has renamed it: it must be the only function in the text that has the
    /// parameters `own` and whose name does not occur in the file. A text with a `return` outside of functions is the
    /// wanted function's body, and its functions are parts of this body.
    fn renamed(&self, text: &str, own: &[String]) -> Option<FunctionFromReply> {
        let (module, tree) = parsed(text).ok()?;
        let known: BTreeSet<&str> = self.functions().iter().map(|function| last_part(&function.name)).collect();
        let mut fitting = (0..module.functions().len()).filter(|&at| {
            let function = &module.functions()[at];
            function.parent.is_none()
                && !known.contains(last_part(&function.name))
                && parameters(&module.header(at)).is_some_and(|names| names == own)
        });
        let root = tree.root_node();
        let is_body = root.named_children(&mut root.walk()).any(|statement| statement.kind() == "return_statement");
        let function = fitting.next().filter(|_| !own.is_empty() && !is_body)?;
        fitting.next().is_none().then(|| FunctionFromReply {
            module,
            tree,
            text: text.to_owned(),
            function,
            bare: false,
            others: Vec::new(),
        })
    }

    /// Computes the edits that put the reply's function in place of `old`. Does not apply them yet: `bytes` of the
    /// result is empty.
    fn put(&self, old: &Function, function: usize, taken: &FunctionFromReply) -> Result<SplicedFile, String> {
        let new = &taken.module.functions()[taken.function];
        let ending = String::from_utf8_lossy(old.line_ending).into_owned();
        let indent = String::from_utf8_lossy(&old.indent).into_owned();
        let outer = reply::indent_of(line_before(self.source(), old.header.start)).to_owned();
        let code = taken.module.body_code(taken.function);

        let mut text = String::new();
        let mut range = old.body.clone();
        let (own, theirs) = (parameters(&self.header(function)), parameters(&taken.module.header(taken.function)));
        let new_signature = !taken.bare && !same_parameters(own.as_deref(), theirs.as_deref());
        if new_signature {
            range = old.header.start..old.body.end;
            let decorators = taken.module.decorators(taken.function);
            if !decorators.is_empty() && decorators != self.decorators(function) {
                range.start = old.whole.start;
                for decorator in decorators {
                    text.push_str(&decorator.replace('\n', &ending));
                    text.push_str(&ending);
                    text.push_str(&outer);
                }
            }
            // Keep the function's name in the file; the reply may use another name.
            let header = taken.module.header(taken.function).replacen(last_part(&new.name), last_part(&old.name), 1);
            text.push_str(&header.replace('\n', &ending));
        }
        if let Some(docstring) = &old.docstring {
            text.push_str(&ending);
            text.push_str(&indent);
            let own = self.encoding.text(&self.source()[docstring.clone()]);
            text.push_str(&own);
        }
        let base = String::from_utf8_lossy(&new.indent).into_owned();
        for line in body_lines(taken, &code, &base) {
            text.push_str(&ending);
            text.push_str(&line.place(&indent));
        }

        let mut wanted = needed(&taken.tree, &taken.text, &(new.whole.start..new.body.end));
        let mut added = Vec::new();
        for sibling in self.siblings(old, taken) {
            let whole = taken.module.functions()[sibling].whole.start..taken.module.functions()[sibling].body.end;
            wanted.extend(needed(&taken.tree, &taken.text, &whole));
            let base = reply::indent_of(line_before(taken.text.as_bytes(), whole.start)).to_owned();
            text.push_str(&ending);
            for line in lines(taken, &whole, &base) {
                text.push_str(&ending);
                text.push_str(&line.place(&outer));
            }
            added.push(last_part(&taken.module.functions()[sibling].name).to_owned());
        }
        let mut edits = vec![(range, self.encoded(&text)?)];
        self.add_needed(old, taken, wanted, &ending, &mut edits, &mut added)?;
        Ok(SplicedFile { bytes: Vec::new(), added, new_signature, edits })
    }

    /// Returns other methods in the reply that the new method uses and that the class in the file lacks. If the reply
    /// has the new method without its class, these are functions that the method uses as attributes of `self`, `cls` or
    /// its class.
    fn siblings(&self, old: &Function, taken: &FunctionFromReply) -> Vec<usize> {
        let Some(class) = &old.class else { return Vec::new() };
        let functions = taken.module.functions();
        let own = &functions[taken.function];
        let objects = ["self", "cls", last_part(class)];
        let used = |range: Range<usize>| match own.class {
            Some(_) => mentioned(&taken.tree, &taken.text, &range),
            None => attributes_of(&taken.tree, &taken.text, &range, &objects),
        };
        let mut wanted = used(own.whole.start..own.body.end);
        let known: BTreeSet<&str> =
            self.functions().iter().filter(|it| it.class == old.class).map(|it| last_part(&it.name)).collect();
        let mut chosen: Vec<usize> = Vec::new();
        loop {
            let next = (0..functions.len()).find(|&at| {
                let (it, name) = (&functions[at], last_part(&functions[at].name));
                at != taken.function
                    && it.class == own.class
                    && it.parent == own.parent
                    && !known.contains(name)
                    && wanted.contains(name)
                    && !chosen.iter().any(|&other| last_part(&functions[other].name) == name)
            });
            let Some(next) = next else { break };
            wanted.extend(used(functions[next].whole.clone()));
            chosen.push(next);
        }
        chosen.sort_unstable();
        chosen
    }

    /// Adds the imports and helpers that the new code mentions and the file does not define.
    fn add_needed(
        &self,
        old: &Function,
        taken: &FunctionFromReply,
        mut wanted: BTreeSet<String>,
        ending: &str,
        edits: &mut Vec<(Range<usize>, Vec<u8>)>,
        added: &mut Vec<String>,
    ) -> Result<(), String> {
        if taken.bare {
            return Ok(());
        }
        let readable = self.encoding.readable(self.source());
        let tree = walk::parse(&readable).ok_or("the file does not parse")?;
        let known = names::bound(&tree, &readable);
        let name = taken.name();
        // The reply's own block comes first, then its other code.
        let sources: Vec<(&Tree, &str)> = std::iter::once((&taken.tree, taken.text.as_str()))
            .chain(taken.others.iter().map(|(tree, text)| (tree, text.as_str())))
            .collect();
        let offered: Vec<(usize, Binding)> = sources
            .iter()
            .enumerate()
            .flat_map(|(place, (tree, text))| {
                offered(tree, text, name).into_iter().map(move |binding| (place, binding))
            })
            .collect();
        let own = taken.module.functions()[taken.function].whole.start;
        let (mut imports, mut helpers) = (Vec::new(), Vec::<(usize, Range<usize>)>::new());
        let mut seen = BTreeSet::new();
        loop {
            let next = offered.iter().find(|(place, binding)| {
                let holds_own =
                    matches!(&binding.kind, BindingKind::Code(range) if *place == 0 && range.contains(&own));
                wanted.contains(&binding.name)
                    && binding.name != name
                    && !known.contains(&binding.name)
                    && !holds_own
                    && !seen.contains(&binding.name)
            });
            let Some((place, next)) = next else { break };
            seen.insert(next.name.clone());
            added.push(next.name.clone());
            match &next.kind {
                BindingKind::Import(line) => imports.push(line.clone()),
                BindingKind::Code(range) => {
                    let (tree, text) = sources[*place];
                    wanted.extend(needed(tree, text, range));
                    helpers.push((*place, range.clone()));
                }
            }
        }
        if !imports.is_empty() {
            let (at, before) = import_place(&tree, self.source());
            let text = imports.join(ending);
            let text = if before { format!("{text}{ending}") } else { format!("{ending}{text}") };
            edits.push((at..at, self.encoded(&text)?));
        }
        // Other code comes first, because the reply's own block may need it.
        helpers.sort_by_key(|(place, range)| (*place == 0, *place, range.start));
        helpers.dedup();
        if !helpers.is_empty() {
            let at = statement_place(&tree, self.source(), old.whole.start);
            let mut text = String::new();
            for (place, range) in helpers {
                text.push_str(&sources[place].1[range].trim_end().replace('\n', ending));
                text.push_str(&ending.repeat(3));
            }
            edits.push((at..at, self.encoded(&text)?));
        }
        Ok(())
    }

    /// Encodes a text in the file's encoding.
    fn encoded(&self, text: &str) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::with_capacity(text.len());
        for character in text.chars() {
            if !self.encoding.push(character, &mut bytes) {
                return Err(format!(
                    "holds the character `{}`, which the file's encoding lacks",
                    character.escape_unicode()
                ));
            }
        }
        Ok(bytes)
    }
}

/// Returns the code in a reply beside the text `own`, from which its function was taken: other blocks and, of texts that
/// do not parse, the imports.
fn other_code(candidates: &[String], own: &str) -> Vec<(Tree, String)> {
    let code = |text: &String| {
        if let Ok((_, tree)) = parsed(text) {
            return Some((tree, text.clone()));
        }
        let is_import =
            |line: &&str| line.starts_with("import ") || line.starts_with("from ") && line.contains(" import ");
        let imports: Vec<&str> = text.lines().filter(is_import).filter(|line| parsed(line).is_ok()).collect();
        let imports = imports.join("\n");
        if imports.is_empty() { None } else { Some((parsed(&imports).ok()?.1, imports)) }
    };
    candidates.iter().filter(|text| *text != own).filter_map(code).collect()
}

fn parsed(text: &str) -> Result<(Module, Tree), String> {
    let module = Module::parse(Path::new("reply.py"), text.as_bytes().to_vec()).map_err(|error| {
        let line = error.place.as_ref().and_then(|(_, line)| *line).unwrap_or(1);
        let shown: String = text.lines().nth(line - 1).unwrap_or_default().trim().chars().take(80).collect();
        format!("does not parse: {} at `{shown}`", error.message)
    })?;
    let tree = walk::parse(text.as_bytes()).ok_or("does not parse")?;
    Ok((module, tree))
}

/// Returns the wanted function in the reply: the last function of the same name, preferably in the same class. A
/// function in one of the `others` classes does not count, because it is a copy of another method of the file. If all
/// functions of that name are in such classes, the error names one of these classes.
fn best(functions: &[Function], old: &Function, others: &BTreeSet<&str>) -> Result<usize, Option<String>> {
    let fits = |function: &Function| {
        if function.name == old.name {
            // Functions of the same name are numbered within a file. Prefer the function with the old function's
            // number.
            return if function.number.is_some() && function.number == old.number { 5 } else { 4 };
        }
        match (&function.class, &old.class, function.parent) {
            (Some(theirs), Some(own), _) if last_part(theirs) == last_part(own) => 3,
            (None, _, None) => 2,
            (Some(_), _, None) => 1,
            _ => 0,
        }
    };
    let mut elsewhere = None;
    let own = (0..functions.len()).filter(|&at| last_part(&functions[at].name) == last_part(&old.name)).filter(|&at| {
        let class = functions[at].class.as_deref().map(last_part).filter(|class| others.contains(class));
        elsewhere = elsewhere.take().or(class.map(str::to_owned));
        class.is_none()
    });
    let found = own.max_by_key(|&at| (fits(&functions[at]), at));
    found.ok_or(elsewhere)
}

/// If the function's body has no code, or only raises `NotImplementedError`, returns a text that says so; otherwise
/// `None`.
fn no_code(taken: &FunctionFromReply) -> Option<&'static str> {
    let range = taken.module.body_code(taken.function);
    let mut code = taken.text[range]
        .lines()
        .map(|line| line.trim().trim_start_matches(';').trim())
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = code.next();
    let more = code.next().is_some();
    match first {
        None => Some("has no code in its body"),
        Some("pass" | "...") if !more => Some("has no code in its body"),
        Some(line) if !more && line.starts_with("raise NotImplementedError") => {
            Some("still only raises NotImplementedError")
        }
        Some(_) => None,
    }
}

/// Parses a text that contains only a function's body.
fn bare_body(text: &str, header: &str) -> Option<FunctionFromReply> {
    let mut lines = text.lines();
    let first = lines.find(|line| !line.trim().is_empty())?;
    let rest: Vec<&str> = lines.collect();
    // The first line may lack the indentation of the other lines, because other text stood before it on the same line
    // of the reply. So also try the text with the other lines' indentation added to the first line.
    let deeper = reply::shared_indent(rest.iter().copied());
    let moved = reply::dedent(&format!("{deeper}{first}\n{}", rest.join("\n")));
    for body in [text, moved.as_str()] {
        let indented: String = body.lines().fold(String::new(), |text, line| {
            if line.trim().is_empty() { text + "\n" } else { format!("{text}    {line}\n") }
        });
        let whole = format!("{header}\n{indented}");
        let Ok((module, tree)) = parsed(&whole) else { continue };
        let is_body =
            |function: &Function| function.parent.is_none() && function.body.end + 1 >= whole.trim_end().len();
        if module.functions().first().is_some_and(is_body) && does_something(&tree) {
            return Some(FunctionFromReply { module, tree, text: whole, function: 0, bare: true, others: Vec::new() });
        }
    }
    None
}

/// Whether the first function's own statements compute or return something. This excludes prose: a single word parses
/// as Python, but does neither.
fn does_something(tree: &Tree) -> bool {
    let body = tree.root_node().named_child(0).and_then(|function| function.child_by_field_name("body"));
    body.is_some_and(|body| {
        let mut cursor = body.walk();
        let statements: Vec<_> = body.named_children(&mut cursor).collect();
        let defines = |kind: &str| matches!(kind, "function_definition" | "class_definition" | "decorated_definition");
        let returns = statements.iter().any(|it| it.kind() == "return_statement");
        let works = statements.iter().any(|it| {
            let inner = it.named_child(0).map(|inner| inner.kind());
            match it.kind() {
                "expression_statement" => {
                    matches!(inner, Some("assignment" | "augmented_assignment" | "call" | "yield"))
                }
                "if_statement" | "for_statement" | "while_statement" | "with_statement" | "try_statement" => true,
                _ => false,
            }
        });
        returns || (works && !statements.iter().any(|it| defines(it.kind())))
    })
}

/// Whether the reply's body fits the signature in the file, because the parameters have the same names. `self` and
/// `cls` are not compared.
fn same_parameters(own: Option<&[String]>, theirs: Option<&[String]>) -> bool {
    let (Some(own), Some(theirs)) = (own, theirs) else { return true };
    let receiver = |names: &[String]| names.first().is_some_and(|first| first == "self" || first == "cls");
    let bare = |names: &[String]| names[usize::from(receiver(names))..].to_vec();
    bare(own) == bare(theirs)
}

/// A line of code, and whether it begins inside a string. Inside a string, its indentation must not change.
struct CodeLine<'a> {
    text: &'a str,
    in_string: bool,
}

impl CodeLine<'_> {
    fn place(&self, indent: &str) -> String {
        if self.in_string || self.text.is_empty() { self.text.to_owned() } else { format!("{indent}{}", self.text) }
    }
}

/// Returns the lines of a body, without the header's line. The indentation `base` is removed from each line.
fn body_lines<'a>(taken: &'a FunctionFromReply, code: &Range<usize>, base: &str) -> Vec<CodeLine<'a>> {
    let text = &taken.text[code.clone()];
    let first_end = text.find('\n').unwrap_or(text.len());
    let first = text[..first_end].trim().trim_start_matches(';').trim();
    let mut found = Vec::new();
    // Keep code that is on the line of the header or of the docstring.
    if !first.is_empty() && !first.starts_with('#') {
        found.push(CodeLine { text: first, in_string: false });
    }
    if first_end < text.len() {
        found.extend(lines(taken, &(code.start + first_end + 1..code.end), base));
    }
    let blank = |line: &CodeLine<'_>| line.text.trim().is_empty() && !line.in_string;
    while found.last().is_some_and(blank) {
        found.pop();
    }
    let start = found.iter().position(|line| !blank(line)).unwrap_or(0);
    found.drain(..start);
    found
}

/// Returns the lines in `range`, which must begin at the start of a line or of a statement. The indentation `base` is
/// removed from each line that does not begin inside a string.
fn lines<'a>(taken: &'a FunctionFromReply, range: &Range<usize>, base: &str) -> Vec<CodeLine<'a>> {
    let strings = strings(&taken.tree, range);
    let mut at = range.start;
    let mut found = Vec::new();
    for line in taken.text[range.clone()].split('\n') {
        let in_string = strings.iter().any(|string| string.start < at && at < string.end);
        let text = if in_string {
            line
        } else {
            let line = line.trim_end();
            line.strip_prefix(base).unwrap_or_else(|| line.trim_start_matches([' ', '\t']))
        };
        found.push(CodeLine { text, in_string });
        at += line.len() + 1;
    }
    found
}

/// Returns the ranges of those strings in `range` that span several lines.
fn strings(tree: &Tree, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut cursor = tree.walk();
    'tree: loop {
        let node = cursor.node();
        let apart = node.end_byte() <= range.start || node.start_byte() >= range.end;
        let string = node.kind() == "string";
        if string && !apart && node.start_position().row < node.end_position().row {
            found.push(node.byte_range());
        }
        if !apart && !string && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                break 'tree;
            }
        }
    }
    found
}

/// Returns the offset at which to add imports: after the last import at the top of the file; without imports, after the
/// file's docstring; without a docstring, before the first statement. Also returns whether a statement follows at that
/// offset.
fn import_place(tree: &Tree, source: &[u8]) -> (usize, bool) {
    let root = tree.root_node();
    let mut cursor = root.walk();
    let mut place = None;
    for (number, statement) in root.named_children(&mut cursor).filter(|it| it.kind() != "comment").enumerate() {
        let is_import = statement.kind().contains("import");
        let is_docstring = number == 0
            && statement.kind() == "expression_statement"
            && statement.named_child(0).is_some_and(|inner| inner.kind() == "string");
        if !is_import && !is_docstring {
            return place.unwrap_or_else(|| (start_of_line(source, statement.start_byte()), true));
        }
        place = Some((end_of_line(source, statement.end_byte()), false));
    }
    place.unwrap_or((source.len(), false))
}

/// Returns the offset at which to add helpers: before the top-level statement that contains `inside` and before the
/// comments above that statement.
fn statement_place(tree: &Tree, source: &[u8], inside: usize) -> usize {
    let root = tree.root_node();
    let mut cursor = root.walk();
    let statement =
        root.named_children(&mut cursor).find(|it| it.kind() != "comment" && it.byte_range().contains(&inside));
    let mut at = start_of_line(source, statement.map_or(inside, |it| it.start_byte()));
    while at > 0 {
        let above = start_of_line(source, at - 1 - usize::from(source[..at].ends_with(b"\r\n")));
        let directive = source[above..].starts_with(b"#!") || names_encoding(&source[above..at]);
        if source.get(above) != Some(&b'#') || directive {
            break;
        }
        at = above;
    }
    at
}

/// Whether a comment declares the file's encoding, so that it must stay on one of the first two lines.
fn names_encoding(line: &[u8]) -> bool {
    line.windows(6).any(|window| window == b"coding")
}

fn is_end(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

fn start_of_line(source: &[u8], at: usize) -> usize {
    let start = source[..at].iter().rposition(|&byte| is_end(byte)).map_or(0, |end| end + 1);
    if start == 0 && source.starts_with(b"\xef\xbb\xbf") { 3.min(at) } else { start }
}

fn end_of_line(source: &[u8], at: usize) -> usize {
    source[at..].iter().position(|&byte| is_end(byte)).map_or(source.len(), |offset| at + offset)
}

/// Returns the part of the line before the offset `at`.
fn line_before(source: &[u8], at: usize) -> &str {
    std::str::from_utf8(&source[start_of_line(source, at)..at]).unwrap_or_default()
}

fn apply(source: &[u8], edits: &[(Range<usize>, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(source.len() + edits.iter().map(|(_, new)| new.len()).sum::<usize>());
    let mut at = 0;
    for (range, new) in edits {
        bytes.extend_from_slice(&source[at.min(range.start)..range.start]);
        bytes.extend_from_slice(new);
        at = range.end;
    }
    bytes.extend_from_slice(&source[at..]);
    bytes
}

#[cfg(test)]
mod tests;
