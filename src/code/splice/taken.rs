//! Finds the wanted function in a model's reply.

use std::collections::BTreeSet;
use std::path::Path;

use tree_sitter::{Node, Tree};

use super::names::{bound_in, is_definition, needed, parameters};
use super::reply::{self, plain};
use crate::code::function::{Function, last_part};
use crate::code::module::Module;
use crate::code::walk;

/// Indentation of the statements in the text of a [`FunctionFromReply`] whose header this program wrote.
const BODY_INDENT: &str = "    ";

/// A piece of a reply that parses.
pub(super) struct ReplyCode {
    pub module: Module,
    pub tree: Tree,
    pub text: String,
}

impl ReplyCode {
    /// Parses a text. The error is the end of a message that begins with the name of the function in the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let module = Module::parse(Path::new("reply.py"), text.as_bytes().to_vec()).map_err(|error| {
            let line = error.place.as_ref().and_then(|(_, line)| *line).unwrap_or(1);
            let shown: String = text.lines().nth(line - 1).unwrap_or_default().trim().chars().take(80).collect();
            format!("does not parse: {} at `{shown}`", error.message)
        })?;
        let tree = walk::parse(text.as_bytes()).ok_or("does not parse")?;
        Ok(Self { module, tree, text: text.to_owned() })
    }
}

/// The wanted function, as found in a reply.
pub(super) struct FunctionFromReply {
    /// The text with the function.
    pub code: ReplyCode,
    /// Index of the function in the module of `code`.
    pub function: usize,
    /// Whether the reply contained only the body, and this program wrote the header in `code`.
    pub bare: bool,
    /// The reply's other code, which may have imports and helpers.
    pub others: Vec<ReplyCode>,
}

impl FunctionFromReply {
    /// Creates the function without the reply's other code.
    pub fn new(code: ReplyCode, function: usize, bare: bool) -> Self {
        Self { code, function, bare, others: Vec::new() }
    }

    /// Adds the reply's other code: all `candidates` except the text `own`, from which the function was taken. Of a
    /// candidate that does not parse, only the imports are added.
    pub fn with_other_code(self, candidates: &[String], own: &str) -> Self {
        let code = |text: &String| {
            if let Ok(code) = ReplyCode::parse(text) {
                return Some(code);
            }
            let is_import =
                |line: &&str| line.starts_with("import ") || line.starts_with("from ") && line.contains(" import ");
            let imports = text.lines().filter(is_import).filter(|line| ReplyCode::parse(line).is_ok());
            let imports = imports.collect::<Vec<_>>().join("\n");
            if imports.is_empty() { None } else { ReplyCode::parse(&imports).ok() }
        };
        let others = candidates.iter().filter(|text| *text != own).filter_map(code).collect();
        Self { others, ..self }
    }

    /// Returns the function's ranges in the text.
    pub fn function(&self) -> &Function {
        &self.code.module.functions()[self.function]
    }

    /// Returns the function's name in the reply, without its class.
    pub fn name(&self) -> &str {
        last_part(&self.function().name)
    }

    /// Returns the names of other functions in the same text, without their classes.
    pub fn names_of(&self, functions: &[usize]) -> Vec<String> {
        functions.iter().map(|&at| last_part(&self.code.module.functions()[at].name).to_owned()).collect()
    }

    /// Returns the function's signature; in a reply with only the body, the signature in the file.
    pub fn header(&self) -> String {
        self.code.module.header(self.function)
    }

    /// Whether the reply contains a definition with the name of `old`, not only a body or a renamed function.
    pub fn defines(&self, old: &Function) -> bool {
        !self.bare && self.name() == last_part(&old.name)
    }

    /// Returns the indentation that this program has added to each line of the reply, also inside strings.
    pub const fn added_indent(&self) -> &'static str {
        if self.bare { BODY_INDENT } else { "" }
    }

    /// Returns the names of the function's parameters and variables.
    pub fn variables(&self) -> BTreeSet<String> {
        let function = self.function();
        let body = function.header.end..function.body.end;
        let mut found = bound_in(&self.code.tree, &self.code.text, &body);
        found.extend(parameter_names(&self.header()));
        found
    }
}

impl Module {
    /// Finds the reply's version of `old`, the file's function with the index `function`.
    ///
    /// # Errors
    /// Returns a message for the model if the reply does not contain the function, or if the function contains no code
    /// or does not parse.
    pub(super) fn take(&self, old: &Function, function: usize, reply: &str) -> Result<FunctionFromReply, String> {
        let name = last_part(&old.name);
        let class = old.class.as_deref().map(last_part);
        // Small models write `def Class.method(`, because the prompt names the method in this way.
        let dotted = format!("def {}(", old.name);
        let candidates: Vec<String> =
            reply::candidates(reply).iter().map(|text| text.replace(&dotted, &format!("def {name}("))).collect();
        let mut fault = None;
        let mut found = Vec::new();
        let role = property_role(self, function);
        let others = self.other_classes(old);
        let mut elsewhere = None;
        for candidate in &candidates {
            let parts = [
                Some(candidate.clone()),
                reply::without_last_definition(candidate, name),
                reply::lines_of(candidate, name, class),
            ];
            for text in parts.into_iter().flatten() {
                match ReplyCode::parse(&text) {
                    Ok(code) => match best(&code.module, old, role.as_deref(), &others) {
                        Ok(function) => {
                            found.push(FunctionFromReply::new(code, function, false));
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
            match no_code(&taken.code, taken.function) {
                None => {
                    let own = taken.code.text.clone();
                    return Ok(taken.with_other_code(&candidates, &own));
                }
                Some(what) => empty = Some(what.to_owned()),
            }
        }
        let elsewhere = elsewhere.map(|class| format!("is written as a method of another class, `{class}`"));
        if let Some(what) = empty.or(fault).or(elsewhere) {
            return Err(format!("`{name}` {what}"));
        }
        let header = self.header(function);
        let own = parameters(&header).unwrap_or_default();
        let mut bodies = Vec::new();
        for candidate in &candidates {
            let renamed = self.renamed(candidate, &own);
            let is_renamed = renamed.is_some();
            let taken = renamed.or_else(|| bare_body(candidate, &header));
            if let Some(taken) = taken.filter(|it| no_code(&it.code, it.function).is_none()) {
                bodies.push((is_renamed || is_surely_body(&taken.code, &own), taken, candidate));
            }
        }
        // Prefer a block that is surely the body: a block that has no `return` and needs no parameter may be an example
        // of how to call the function.
        let best = bodies.iter().position(|(is_sure, ..)| *is_sure).unwrap_or(0);
        match bodies.into_iter().nth(best) {
            Some((_, taken, candidate)) => Ok(taken.with_other_code(&candidates, candidate)),
            None => Err(format!("the reply holds no Python code of `{name}`")),
        }
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
    /// parameters `own` and whose name does not occur in the file. If statements outside of functions contain a
    /// `return` or need a parameter, the text is the wanted function's body, and its functions are parts of this body.
    fn renamed(&self, text: &str, own: &[String]) -> Option<FunctionFromReply> {
        let code = ReplyCode::parse(text).ok()?;
        let known: BTreeSet<&str> = self.functions().iter().map(|function| last_part(&function.name)).collect();
        let mut fitting = (0..code.module.functions().len()).filter(|&at| {
            let function = &code.module.functions()[at];
            function.parent.is_none()
                && !known.contains(last_part(&function.name))
                && parameters(&code.module.header(at)).is_some_and(|names| names == own)
        });
        let root = code.tree.root_node();
        let returns = root.named_children(&mut root.walk()).any(|statement| statement.kind() == "return_statement");
        let is_body = returns || needs_parameter(&code, root, own);
        let function = fitting.next().filter(|_| !own.is_empty() && !is_body)?;
        fitting.next().is_none().then(|| FunctionFromReply::new(code, function, false))
    }
}

/// Returns the names of a signature's parameters without their stars.
pub(super) fn parameter_names(header: &str) -> Vec<String> {
    let names = parameters(header).unwrap_or_default();
    names.iter().map(|name| name.trim_start_matches('*').to_owned()).collect()
}

/// Returns the wanted function in the reply: the last function of the same name, preferably in the same class. A
/// function in one of the `others` classes does not count, because it is a copy of another method of the file. If all
/// functions of that name are in such classes, the error names one of these classes. `role` is the old function's
/// [`property_role`].
fn best(module: &Module, old: &Function, role: Option<&str>, others: &BTreeSet<&str>) -> Result<usize, Option<String>> {
    let functions = module.functions();
    let rank = |function: &Function| match (&function.class, &old.class, function.parent) {
        _ if function.name == old.name => 4,
        (Some(theirs), Some(own), _) if last_part(theirs) == last_part(own) => 3,
        (None, _, None) => 2,
        (Some(_), _, None) => 1,
        _ => 0,
    };
    let preference = |at: usize| {
        let function = &functions[at];
        // Functions of the same name are numbered within a file. Prefer the function with the old function's number.
        let has_number = function.name == old.name && function.number.is_some() && function.number == old.number;
        (rank(function), property_role(module, at).as_deref() == role, has_number, at)
    };
    let mut elsewhere = None;
    let own = (0..functions.len()).filter(|&at| last_part(&functions[at].name) == last_part(&old.name)).filter(|&at| {
        let class = functions[at].class.as_deref().map(last_part).filter(|class| others.contains(class));
        elsewhere = elsewhere.take().or(class.map(str::to_owned));
        class.is_none()
    });
    let found = own.max_by_key(|&at| preference(at));
    found.ok_or(elsewhere)
}

/// Returns the role of a property's method that has a decorator such as `@NAME.setter`, where `NAME` is the method's
/// own name: `setter` or `deleter`. Returns `None` for other functions, also for the method that reads the property.
fn property_role(module: &Module, function: usize) -> Option<String> {
    let name = last_part(&module.functions()[function].name);
    module.decorators(function).iter().find_map(|decorator| {
        let role = decorator.strip_prefix('@')?.trim().strip_prefix(name)?.strip_prefix('.')?;
        Some(role.to_owned())
    })
}

/// If the function's body has no code, or only raises `NotImplementedError`, returns a text that says so; otherwise
/// `None`.
pub(super) fn no_code(code: &ReplyCode, function: usize) -> Option<&'static str> {
    match only_line(code, function)?.as_str() {
        "" | "pass" | "..." => Some("has no code in its body"),
        line if line.starts_with("raise NotImplementedError") => Some("still only raises NotImplementedError"),
        _ => None,
    }
}

/// Returns the only line of a function's body without the docstring and comments; empty if there is no line, and `None`
/// if there are several.
pub(super) fn only_line(code: &ReplyCode, function: usize) -> Option<String> {
    let text = &code.text[code.module.body_code(function)];
    let mut lines = text.lines().map(|line| plain(line).trim_start_matches(';').trim()).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    lines.next().is_none().then(|| first.to_owned())
}

/// Parses a text that contains only a function's body.
pub(super) fn bare_body(text: &str, header: &str) -> Option<FunctionFromReply> {
    let mut lines = text.lines();
    let first = lines.find(|line| !line.trim().is_empty())?;
    let rest: Vec<&str> = lines.collect();
    // In some replies, the first line of code follows other text on one line, and so has lost its indentation. So also
    // try the text with the other lines' indentation added to the first line.
    let deeper = reply::shared_indent(rest.iter().copied());
    let moved = reply::dedent(&format!("{deeper}{first}\n{}", rest.join("\n")));
    for body in [text, moved.as_str()] {
        let whole = with_header(header, body);
        let Ok(code) = ReplyCode::parse(&whole) else { continue };
        let is_body =
            |function: &Function| function.parent.is_none() && function.body.end + 1 >= whole.trim_end().len();
        if code.module.functions().first().is_some_and(is_body) && does_something(&code, header) {
            return Some(FunctionFromReply::new(code, 0, true));
        }
    }
    None
}

/// Returns the function that has this header and the statements of `text` as its body.
pub(super) fn with_header(header: &str, text: &str) -> String {
    let indented = |line: &str| if line.trim().is_empty() { "\n".to_owned() } else { format!("{BODY_INDENT}{line}\n") };
    let body: String = text.lines().map(indented).collect();
    format!("{header}\n{body}")
}

/// Whether the first function's own statements compute or return something. This excludes prose: a single word parses
/// as Python, but does neither. If the statements are next to definitions, they must also need a parameter of `header`;
/// otherwise they may be an example of how to call what is defined.
fn does_something(code: &ReplyCode, header: &str) -> bool {
    let body = code.tree.root_node().named_child(0).and_then(|function| function.child_by_field_name("body"));
    body.is_some_and(|body| {
        let mut cursor = body.walk();
        let statements: Vec<_> = body.named_children(&mut cursor).collect();
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
        let needs = || needs_parameter(code, body, &parameters(header).unwrap_or_default());
        returns || (works && (!statements.iter().any(|it| is_definition(*it)) || needs()))
    })
}

/// Whether the statements of the first function include a `return` or `yield`, not counting nested blocks, or need one
/// of the function's parameters `own`.
fn is_surely_body(code: &ReplyCode, own: &[String]) -> bool {
    let body = code.tree.root_node().named_child(0).and_then(|function| function.child_by_field_name("body"));
    body.is_some_and(|body| {
        let is_result = |it: Node<'_>| {
            it.kind() == "return_statement" || it.named_child(0).is_some_and(|inner| inner.kind() == "yield")
        };
        body.named_children(&mut body.walk()).any(is_result) || needs_parameter(code, body, own)
    })
}

/// Whether a statement of a block needs one of the parameters `own`, which no statement before it binds. Definitions in
/// the block do not count.
fn needs_parameter(code: &ReplyCode, block: Node<'_>, own: &[String]) -> bool {
    let mut bound = BTreeSet::new();
    let mut cursor = block.walk();
    for statement in block.named_children(&mut cursor) {
        let range = statement.byte_range();
        let binds = bound_in(&code.tree, &code.text, &range);
        if !is_definition(statement) {
            let needs = needed(&code.tree, &code.text, &range);
            // An assignment such as `x = x + 1` needs the name that it binds. A loop that binds a name rarely does.
            let is_simple = statement.kind() == "expression_statement";
            let is_unbound =
                |name: &str| needs.contains(name) && !bound.contains(name) && (is_simple || !binds.contains(name));
            if own.iter().any(|name| is_unbound(name.trim_start_matches('*'))) {
                return true;
            }
        }
        bound.extend(binds);
    }
    false
}
