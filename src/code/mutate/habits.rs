//! Mutants with mistakes that are hard to see in working code: an ignored argument or option, a function that modifies
//! its caller's data, formulas that fail for large or small numbers, a greedy choice instead of the best one.
//!
//! Experiments notice such a mistake only if they use the option, use the inputs again, or reach extreme values.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tree_sitter::Node;

use super::MutantKind;
use super::names::FunctionNames;
use super::places::{MutationWalk, descendants, is_keyword};
use crate::code::walk::{children, parts};

/// NumPy functions that accept `out` and return an array with the shape of their largest argument.
const ELEMENTWISE: &[&str] =
    &["abs", "add", "divide", "exp", "log", "maximum", "minimum", "multiply", "negative", "sqrt", "square", "subtract"];

/// Functions that change their first argument.
const CHANGING: &[&str] = &["at", "copyto", "fill_diagonal", "put", "put_along_axis", "putmask", "shuffle"];

/// Methods that change their object.
const CHANGING_METHODS: &[&str] =
    &["append", "clear", "extend", "fill", "insert", "pop", "remove", "resize", "reverse", "sort", "update"];

/// Python code of a greedy replacement for `scipy.optimize.linear_sum_assignment`, which finds the best assignment. In
/// the replacement, each row takes the cheapest column that is still free.
const GREEDY_ASSIGNMENT: &str = "(lambda cost_matrix, maximize=False, np=__import__(\"numpy\"): (lambda costs, taken: \
     (np.arange(min(costs.shape)), np.array([taken.append(min((column for column in range(costs.shape[1]) if column \
     not in taken), key=costs[row].__getitem__)) or taken[-1] for row in range(min(costs.shape))])))\
     (np.asarray(cost_matrix) * (-1 if maximize else 1), []))";

impl<'source> MutationWalk<'source> {
    /// Collects the names in a function that decide which mutants of the function are made. Must be called before the
    /// function's body is walked.
    pub(super) fn learn(&mut self, root: Node<'_>) {
        let mut names = FunctionNames::default();
        for parameter in self.parameters(root) {
            names.parameters.insert(self.text(parameter.0));
        }
        let Some(body) = root.child_by_field_name("body") else { return };
        for node in descendants(body) {
            match node.kind() {
                "assignment" | "augmented_assignment" => self.learn_assignment(node, &mut names),
                "for_statement" | "named_expression" => {
                    let target = node.child_by_field_name("left").or_else(|| node.child_by_field_name("name"));
                    for name in target.into_iter().flat_map(descendants) {
                        names.parameters.remove(self.text(name));
                    }
                }
                "call" => self.learn_call(node, &mut names),
                _ => {}
            }
        }
        names.options = self.options(root);
        self.names = names;
    }

    fn learn_assignment(&self, node: Node<'_>, names: &mut FunctionNames<'source>) {
        let Some(left) = node.child_by_field_name("left") else { return };
        if left.kind() == "subscript" || node.kind() == "augmented_assignment" {
            names.changed.insert(self.base(left));
        }
        if left.kind() == "subscript" {
            return;
        }
        for name in descendants(left) {
            names.parameters.remove(self.text(name));
        }
        if node.child_by_field_name("right").is_some_and(|right| self.is_extreme(right, &HashSet::new())) {
            names.extremes.insert(self.text(left));
        }
    }

    fn learn_call(&self, node: Node<'_>, names: &mut FunctionNames<'source>) {
        let (Some(callee), Some(arguments)) =
            (node.child_by_field_name("function"), node.child_by_field_name("arguments"))
        else {
            return;
        };
        let name = self.called(callee);
        names.exponentials |= name == "exp";
        if CHANGING.contains(&name)
            && let Some(first) = parts(arguments).next()
        {
            names.changed.insert(self.base(first));
        }
        if CHANGING_METHODS.contains(&name)
            && let Some(object) = callee.child_by_field_name("object")
        {
            names.changed.insert(self.base(object));
        }
    }

    /// Returns the parameters of a function except `self` and `cls`, each with its default if that is a literal.
    fn parameters<'tree>(&self, function: Node<'tree>) -> Vec<(Node<'tree>, Option<Node<'tree>>)> {
        let Some(all) = function.child_by_field_name("parameters") else { return Vec::new() };
        let named = |parameter: Node<'tree>| {
            let name = match parameter.kind() {
                "identifier" => parameter,
                "typed_parameter" => parts(parameter).next().filter(|it| it.kind() == "identifier")?,
                "default_parameter" | "typed_default_parameter" => parameter.child_by_field_name("name")?,
                _ => return None,
            };
            let default = parameter.child_by_field_name("value").filter(|value| is_literal(*value));
            (!matches!(self.text(name), "self" | "cls")).then_some((name, default))
        };
        parts(all).filter_map(named).collect()
    }

    /// Returns the options of the class that a method belongs to: names of attributes, with literal defaults.
    fn options(&self, method: Node<'_>) -> HashMap<&'source str, &'source str> {
        let mut options = HashMap::new();
        let mut class = method.parent();
        while let Some(node) = class.filter(|node| node.kind() != "class_definition") {
            class = node.parent();
        }
        let Some(block) = class.and_then(|class| class.child_by_field_name("body")) else { return options };
        for statement in parts(block) {
            let inner = match statement.kind() {
                "expression_statement" => parts(statement).next(),
                "decorated_definition" => statement.child_by_field_name("definition"),
                _ => Some(statement),
            };
            let Some(inner) = inner else { continue };
            let field = |name| inner.child_by_field_name(name);
            if let ("assignment", Some(left), Some(right)) = (inner.kind(), field("left"), field("right")) {
                if left.kind() == "identifier" && is_literal(right) {
                    options.insert(self.text(left), self.text(right));
                }
            } else if inner.kind() == "function_definition"
                && field("name").is_some_and(|name| self.text(name) == "__init__")
            {
                options.extend(self.stored(inner));
            }
        }
        options
    }

    /// Returns the parameters that `__init__` stores unchanged in attributes of the same name, with their defaults.
    fn stored(&self, init: Node<'_>) -> Vec<(&'source str, &'source str)> {
        let Some(body) = init.child_by_field_name("body") else { return Vec::new() };
        let assigned: HashSet<String> = descendants(body)
            .filter(|node| node.kind() == "assignment")
            .map(|node| self.text(node).split_whitespace().collect())
            .collect();
        let text = |(name, default): (Node<'_>, Option<Node<'_>>)| Some((self.text(name), self.text(default?)));
        let kept = |(name, _): &(&str, &str)| assigned.contains(&format!("self.{name}={name}"));
        self.parameters(init).into_iter().filter_map(text).filter(kept).collect()
    }

    /// Adds a mutant for each parameter with a default, which sets the parameter to that default whatever the caller
    /// passes.
    pub(super) fn ignored_parameters(&mut self, root: Node<'_>) {
        let Some(body) = root.child_by_field_name("body") else { return };
        let is_docstring = |statement: &Node<'_>| {
            statement.kind() == "expression_statement"
                && parts(*statement).next().is_some_and(|it| it.kind() == "string")
        };
        let Some(first) = parts(body).find(|statement| !is_docstring(statement)) else { return };
        let begin = first.start_byte() - first.start_position().column;
        let margin = &self.source[begin..first.start_byte()];
        let own_line = margin.iter().all(u8::is_ascii_whitespace);
        let used: HashSet<&str> =
            descendants(body).filter(|it| it.kind() == "identifier").map(|it| self.text(it)).collect();
        for (name, default) in self.parameters(root) {
            let Some(default) = default.filter(|_| used.contains(self.text(name))) else { continue };
            let mut replacement = format!("{} = {}", self.text(name), self.text(default)).into_bytes();
            if own_line {
                replacement.push(b'\n');
                replacement.extend_from_slice(margin);
            } else {
                replacement.extend_from_slice(b"; ");
            }
            self.add(MutantKind::Argument, first.start_byte()..first.start_byte(), replacement, false);
        }
    }

    /// Adds a mutant that reads the default of an option `self.x` instead of its value.
    pub(super) fn ignored_option(&mut self, node: Node<'_>, name: &str) {
        let Some(default) = self.names.options.get(name).copied() else { return };
        let Some(parent) = node.parent() else { return };
        let is = |field| parent.child_by_field_name(field).is_some_and(|it| it.id() == node.id());
        let read = match parent.kind() {
            "assignment" | "augmented_assignment" | "for_statement" => !is("left"),
            "call" => !is("function"),
            "subscript" => !is("value"),
            "attribute" | "pattern_list" | "tuple_pattern" | "delete_statement" => false,
            _ => true,
        };
        if read {
            let plain = default.starts_with(|first: char| first.is_alphanumeric() || "\"'(".contains(first));
            let text = if plain { default.to_owned() } else { format!("({default})") };
            self.push(MutantKind::Argument, node.byte_range(), &text);
        }
    }

    /// Adds mutants for a call of `name`. `arguments` includes keyword arguments.
    pub(super) fn habitual_call(&mut self, node: Node<'_>, callee: Node<'_>, name: &str, arguments: &[Node<'_>]) {
        let object = callee.child_by_field_name("object").map_or("", |object| self.text(object));
        let numpy = matches!(object, "np" | "numpy");
        let keywords: HashSet<&str> = arguments
            .iter()
            .filter_map(|it| it.child_by_field_name("name").filter(|_| is_keyword(*it)))
            .map(|name| self.text(name))
            .collect();
        let function = callee.child_by_field_name("attribute").unwrap_or(callee).byte_range();
        match (name, arguments) {
            ("array" | "copy", [value, ..])
                if numpy && !keywords.contains("copy") && !is_fresh(*value) && self.copy_matters(node) =>
            {
                self.push(MutantKind::Alias, function, "asarray");
            }
            ("copy", []) if self.copy_matters(node) => self.push(MutantKind::Alias, node.byte_range(), object),
            ("deepcopy", [value]) if self.copy_matters(node) => {
                let text = self.text(*value);
                self.push(MutantKind::Alias, node.byte_range(), text);
            }
            ("linear_sum_assignment", _) => self.push(MutantKind::Greedy, callee.byte_range(), GREEDY_ASSIGNMENT),
            ("sf", [_, ..]) if !object.is_empty() => {
                let given = self.between(callee.end_byte()..node.end_byte());
                self.push(MutantKind::Numerics, node.byte_range(), &format!("(1.0 - {object}.cdf{given})"));
            }
            ("erfc", [_]) => {
                let given = self.between(callee.end_byte()..node.end_byte());
                let erf = self.text(callee).replace("erfc", "erf");
                self.push(MutantKind::Numerics, node.byte_range(), &format!("(1.0 - {erf}{given})"));
            }
            ("subtract", [left, right]) if numpy => self.without_extreme(node, *left, *right),
            // Computing in single precision gives wrong results for few inputs only. Mark these mutants as trivial, so
            // that they are chosen last.
            ("sum" | "mean" | "cumsum", [.., last]) if numpy && !keywords.contains("dtype") => {
                let end = last.end_byte();
                self.add(MutantKind::Numerics, end..end, b", dtype=\"float32\"".to_vec(), true);
            }
            _ => {}
        }
        if numpy && ELEMENTWISE.contains(&name) && !keywords.contains("out") && is_whole_value(node) {
            let given = arguments.iter().find(|it| self.names.parameters.contains(self.text(**it)));
            if let (Some(given), Some(last)) = (given, arguments.last()) {
                let out = format!(", out={}", self.text(*given));
                self.push(MutantKind::Alias, last.end_byte()..last.end_byte(), &out);
            }
        }
    }

    /// In functions that call `exp`, adds mutants that replace `a - largest` by `a`, and `smallest - a` by `-a`.
    /// Without the subtraction, `exp` overflows for large numbers.
    pub(super) fn naive_exponential(&mut self, node: Node<'_>) {
        let fields = ["left", "operator", "right"].map(|field| node.child_by_field_name(field));
        if let [Some(left), Some(operator), Some(right)] = fields
            && operator.kind() == "-"
        {
            self.without_extreme(node, left, right);
        }
    }

    fn without_extreme(&mut self, node: Node<'_>, left: Node<'_>, right: Node<'_>) {
        if !self.names.exponentials {
            return;
        }
        if self.is_extreme(right, &self.names.extremes) {
            self.becomes(MutantKind::Numerics, node, left);
        } else if self.is_extreme(left, &self.names.extremes) {
            let text = format!("(-({}))", self.text(right));
            self.push(MutantKind::Numerics, node.byte_range(), &text);
        }
    }

    fn is_extreme(&self, node: Node<'_>, names: &HashSet<&str>) -> bool {
        match node.kind() {
            "identifier" => names.contains(self.text(node)),
            "call" => {
                let callee = node.child_by_field_name("function").map_or("", |callee| self.called(callee));
                matches!(callee, "max" | "amax" | "nanmax" | "min" | "amin" | "nanmin")
            }
            _ => false,
        }
    }

    /// Whether leaving out a copy may matter: the copy is changed later, stored in an attribute, or returned by a
    /// method that copies from `self`.
    fn copy_matters(&self, call: Node<'_>) -> bool {
        let Some(parent) = call.parent() else { return false };
        match parent.kind() {
            "assignment" => parent
                .child_by_field_name("left")
                .is_some_and(|left| left.kind() == "attribute" || self.names.changed.contains(self.text(left))),
            "return_statement" => self.text(call).contains("self."),
            _ => false,
        }
    }

    /// Returns the last part of the name of a called function.
    fn called(&self, callee: Node<'_>) -> &'source str {
        self.text(callee.child_by_field_name("attribute").unwrap_or(callee))
    }

    fn between(&self, range: Range<usize>) -> &'source str {
        std::str::from_utf8(&self.source[range]).unwrap_or_default()
    }
}

/// Whether the value of an expression is a new object. A variable, an attribute or an item of a container may be an
/// object that is also used elsewhere.
fn is_fresh(node: Node<'_>) -> bool {
    !matches!(node.kind(), "identifier" | "attribute" | "subscript")
}

/// Whether an expression is a number, a string, a truth value, `None`, or a tuple of these.
fn is_literal(node: Node<'_>) -> bool {
    match node.kind() {
        "integer" | "float" | "string" | "true" | "false" | "none" => true,
        "unary_operator" => node.child_by_field_name("argument").is_some_and(is_literal),
        "tuple" => children(node).filter(Node::is_named).all(is_literal),
        _ => false,
    }
}

/// Whether a call is the whole value of an assignment or of a `return`.
fn is_whole_value(call: Node<'_>) -> bool {
    call.parent().is_some_and(|parent| match parent.kind() {
        "assignment" => parent.child_by_field_name("left").is_some_and(|left| left.kind() == "identifier"),
        kind => kind == "return_statement",
    })
}
