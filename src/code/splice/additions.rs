//! Adds what new code needs and the file lacks: imports and helpers from the model's reply.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use tree_sitter::Tree;

use super::lines::lines;
use super::names::{self, Binding, BindingKind, needed, offered, parameters, same_parameters};
use super::taken::{FunctionFromReply, ReplyCode, no_code, only_line};
use crate::code::extent::{end_of_line, start_of_line};
use crate::code::module::Module;
use crate::code::walk;

/// Names that new code needs from its surroundings.
pub(super) struct NeededNames {
    /// All names that the new code needs.
    pub all: BTreeSet<String>,
    /// Names of `all` that lines in the function's body may bind to something else than the rest of the file does,
    /// because only new code in the body uses them.
    pub rebindable: BTreeSet<String>,
    /// Parameters and variables of the function.
    pub variables: BTreeSet<String>,
}

/// Imports and helpers that are added with new code.
pub(super) struct Additions {
    /// Names of the imports and helpers.
    pub names: Vec<String>,
    /// Insertions outside of the function: imports and helpers whose names the file does not bind.
    pub edits: Vec<(Range<usize>, Vec<u8>)>,
    /// Lines to put before the new code in the function, with indentation: imports and helpers whose names mean
    /// something else in the rest of the file.
    pub in_function: Vec<String>,
}

/// A definition or an assignment in a reply.
struct Helper {
    /// Index of the text that contains the helper: 0 for the text with the function.
    source: usize,
    range: Range<usize>,
    /// Names that the helper binds and that the new code or another helper needs.
    names: Vec<String>,
    /// Names that the helper needs.
    needs: BTreeSet<String>,
}

impl Helper {
    /// Returns a key that sorts helpers in the order of the reply. A larger `source` comes earlier in the reply,
    /// because the reply's texts are numbered from its end. The text with the function comes last, because its code may
    /// need the other texts.
    fn key(&self) -> (bool, Reverse<usize>, usize) {
        (self.source == 0, Reverse(self.source), self.range.start)
    }
}

impl Module {
    /// Finds the imports and helpers in a reply that the new code needs. Helpers are put before the statement at the
    /// offset `before`. `indent` is the indentation of the new code, and `ending` ends its lines.
    ///
    /// If the file binds a name, the file's meaning is kept, because a reply often repeats or guesses code of the file.
    /// Only two things from the reply then take precedence, inside of the function: an import from a package that the
    /// file also imports from, and a function with other parameters.
    pub(super) fn additions(
        &self,
        taken: &FunctionFromReply,
        mut wanted: NeededNames,
        before: usize,
        indent: &str,
        ending: &str,
    ) -> Result<Additions, String> {
        let readable = self.encoding.readable(self.source());
        let tree = walk::parse(&readable).ok_or("the file does not parse")?;
        let in_file = names::bindings(&tree, &names::text_of(&readable));
        let known: BTreeSet<&str> = in_file.iter().map(|binding| binding.name.as_str()).collect();
        let unknown = wanted.variables.iter().filter(|name| !known.contains(name.as_str()));
        let variables: BTreeSet<String> = unknown.cloned().collect();
        let name = taken.name();
        // The text with the function comes first, then the reply's other code.
        let sources: Vec<&ReplyCode> = std::iter::once(&taken.code).chain(&taken.others).collect();
        let mut offers: Vec<(usize, Binding)> = Vec::new();
        for (source, code) in sources.iter().enumerate() {
            let found = offered(&code.tree, &code.text, name, &variables);
            offers.extend(found.into_iter().map(|binding| (source, binding)));
        }
        let inner = self.helpers_inside(&offers, &sources, &in_file, &wanted.variables);
        let own = taken.function().whole.start;
        let (mut imports, mut own_imports) = (Vec::new(), Vec::new());
        let (mut helpers, mut own_helpers) = (Vec::<Helper>::new(), Vec::<Helper>::new());
        let mut added = Vec::new();
        let mut seen = BTreeSet::new();
        loop {
            let next = offers.iter().find(|(source, binding)| {
                let holds_own =
                    matches!(&binding.kind, BindingKind::Code(range) if *source == 0 && range.contains(&own));
                wanted.all.contains(&binding.name)
                    && binding.name != name
                    && (!known.contains(binding.name.as_str()) || wanted.rebindable.contains(&binding.name))
                    && !holds_own
                    && !seen.contains(&binding.name)
            });
            let Some((source, binding)) = next else { break };
            seen.insert(binding.name.clone());
            let code = sources[*source];
            let is_new = !known.contains(binding.name.as_str());
            match &binding.kind {
                BindingKind::Import(line) if is_new => imports.push(line.clone()),
                BindingKind::Import(line) if takes_precedence(line, &binding.name, &in_file) => {
                    own_imports.push(line.clone());
                }
                BindingKind::Import(_) => continue,
                BindingKind::Code(range) => {
                    let needs = needed(&code.tree, &code.text, range);
                    if !is_new {
                        // Inside of the function, the function's variables would hide names that the helper needs.
                        let is_hidden = !needs.is_disjoint(&wanted.variables);
                        if is_hidden || !self.has_other_parameters(&binding.name, &in_file, code, range) {
                            continue;
                        }
                    }
                    let is_inside = !is_new || inner.contains(&binding.name);
                    if is_inside {
                        wanted.rebindable.extend(needs.iter().cloned());
                    }
                    wanted.all.extend(needs.iter().cloned());
                    let helpers = if is_inside { &mut own_helpers } else { &mut helpers };
                    match helpers.iter_mut().find(|it| it.source == *source && it.range == *range) {
                        Some(same) => same.names.push(binding.name.clone()),
                        None => helpers.push(Helper {
                            source: *source,
                            range: range.clone(),
                            names: vec![binding.name.clone()],
                            needs,
                        }),
                    }
                }
            }
            added.push(binding.name.clone());
        }
        let mut edits = Vec::new();
        let helper_place = statement_place(&tree, self.source(), before);
        if !imports.is_empty() {
            let (at, is_before) = import_place(&tree, self.source());
            // If the first statement contains the function, helpers are put above the comments before it. The helpers
            // need the imports, so put the imports at least as high.
            let at = if is_before { at.min(helper_place) } else { at };
            let text = imports.join(ending);
            let text = if is_before { format!("{text}{ending}") } else { format!("{ending}{text}") };
            edits.push((at..at, self.encoded(&text)?));
        }
        if !helpers.is_empty() {
            let mut text = String::new();
            for helper in in_order(helpers) {
                text.push_str(&sources[helper.source].text[helper.range].trim_end().replace('\n', ending));
                text.push_str(&ending.repeat(3));
            }
            edits.push((helper_place..helper_place, self.encoded(&text)?));
        }
        let mut in_function: Vec<String> = own_imports.iter().map(|line| format!("{indent}{line}")).collect();
        own_helpers.sort_by_key(Helper::key);
        for helper in own_helpers {
            let helper_lines = lines(sources[helper.source], &helper.range, "", "");
            in_function.extend(helper_lines.iter().map(|line| line.place(indent)));
            in_function.push(String::new());
        }
        Ok(Additions { names: added, edits, in_function })
    }

    /// Returns the names of helpers that the file lacks and that still must be put into the function: they need a name
    /// that has another meaning inside of the function than in the rest of the file, or need such a helper.
    fn helpers_inside(
        &self,
        offers: &[(usize, Binding)],
        sources: &[&ReplyCode],
        in_file: &[Binding],
        variables: &BTreeSet<String>,
    ) -> BTreeSet<String> {
        let is_known = |name: &str| in_file.iter().any(|binding| binding.name == name);
        let mut imports = BTreeSet::new();
        let mut helpers = Vec::new();
        let mut inside = BTreeSet::new();
        for (source, binding) in offers {
            match &binding.kind {
                BindingKind::Import(line) => {
                    if is_known(&binding.name) && takes_precedence(line, &binding.name, in_file) {
                        imports.insert(&binding.name);
                    }
                }
                BindingKind::Code(range) => {
                    let needs = needed(&sources[*source].tree, &sources[*source].text, range);
                    if !needs.is_disjoint(variables) {
                        continue;
                    }
                    if !is_known(&binding.name) {
                        helpers.push((&binding.name, needs));
                    } else if self.has_other_parameters(&binding.name, in_file, sources[*source], range) {
                        inside.insert(binding.name.clone());
                    }
                }
            }
        }
        loop {
            let is_inside =
                |needs: &BTreeSet<String>| needs.iter().any(|it| imports.contains(it) || inside.contains(it));
            let found = helpers.iter().find(|(name, needs)| !inside.contains(*name) && is_inside(needs));
            let Some((name, _)) = found else { break };
            inside.insert((*name).clone());
        }
        inside
    }

    /// Whether the code in `range` is a function of the reply, and the file's only binding of its `name` is a function
    /// with other parameters. A function without code does not count: the model has only abbreviated the file's
    /// function.
    fn has_other_parameters(&self, name: &str, in_file: &[Binding], code: &ReplyCode, range: &Range<usize>) -> bool {
        let is_only = in_file.iter().filter(|binding| binding.name == name).count() == 1;
        let own = self.functions().iter().position(|it| it.name == name && it.number.is_none());
        let theirs = code.module.functions().iter().position(|it| it.name == name && it.whole.start == range.start);
        let (true, Some(own), Some(theirs)) = (is_only, own, theirs) else { return false };
        let (own, header) = (parameters(&self.header(own)), parameters(&code.module.header(theirs)));
        let returns_nothing =
            || matches!(only_line(code, theirs).as_deref(), Some("return" | "return None" | "return ..."));
        !same_parameters(own.as_deref(), header.as_deref()) && no_code(code, theirs).is_none() && !returns_nothing()
    }
}

/// Well-known libraries. Models know in which module of these libraries a function is.
const LIBRARIES: [&str; 9] =
    ["jax", "networkx", "numpy", "pandas", "scipy", "sklearn", "statsmodels", "tensorflow", "torch"];

/// Whether an import in a reply takes precedence over the file's bindings of the same `name`. This is so if all of
/// these bindings import something else, and if the file has an import from the same package. If the file has no such
/// import, the reply's import may be a wrong guess, such as `from utils import f` for `from .utils import f`. An import
/// from another module of the same package may be a wrong guess, too, such as `from utils import f` for `from
/// utils.math import f`. In a well-known library, however, it is no guess if neither module contains the other: `norm`
/// of `scipy.stats` is another function than `norm` of `scipy.linalg`.
fn takes_precedence(line: &str, name: &str, in_file: &[Binding]) -> bool {
    let is_known = package(line).is_some_and(|package| LIBRARIES.contains(&package));
    let is_guess = |own: &str| match (source_module(own), source_module(line)) {
        (Some(module), Some(other)) => {
            package(own) == package(line) && (!is_known || contains(module, other) || contains(other, module))
        }
        _ => false,
    };
    let is_other = |binding: &Binding| match &binding.kind {
        BindingKind::Import(own) => imported(own) != imported(line) && !is_guess(own),
        BindingKind::Code(_) => false,
    };
    let package_in_file = |binding: &Binding| match &binding.kind {
        BindingKind::Import(own) => package(own) == package(line),
        BindingKind::Code(_) => false,
    };
    in_file.iter().filter(|binding| binding.name == name).all(is_other)
        && package(line).is_some()
        && in_file.iter().any(package_in_file)
}

/// Whether two modules, as dotted names, are the same or the second is inside of the first.
fn contains(module: &str, other: &str) -> bool {
    other.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the module of a statement `from MODULE import NAME`; `None` for other statements.
fn source_module(line: &str) -> Option<&str> {
    line.strip_prefix("from ")?.split(' ').next()
}

/// Returns the dotted name of what an import statement of a single name imports: `a.b` for `from a import b as c` and
/// for `import a.b as c`. Returns the whole statement for `import a.b`, which binds `a`.
fn imported(line: &str) -> String {
    match line.split(' ').collect::<Vec<_>>().as_slice() {
        ["from", module, "import", name, ..] => format!("{module}.{name}"),
        ["import", module, "as", _] => (*module).to_owned(),
        ["import", module] if !module.contains('.') => (*module).to_owned(),
        _ => line.to_owned(),
    }
}

/// Returns the top-level package or module of an import statement; `None` for a relative import.
fn package(line: &str) -> Option<&str> {
    line.split(' ').nth(1)?.split('.').next().filter(|package| !package.is_empty())
}

/// Orders helpers as in the reply, but so that each helper follows those that it needs, if possible.
fn in_order(mut helpers: Vec<Helper>) -> Vec<Helper> {
    helpers.sort_by_key(Helper::key);
    let mut ordered = Vec::with_capacity(helpers.len());
    while !helpers.is_empty() {
        let needs = |it: &Helper, other: &Helper| other.names.iter().any(|name| it.needs.contains(name));
        let is_free = |at: usize| (0..helpers.len()).all(|other| other == at || !needs(&helpers[at], &helpers[other]));
        let next = (0..helpers.len()).find(|&at| is_free(at)).unwrap_or(0);
        ordered.push(helpers.remove(next));
    }
    ordered
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
