//! Mutants with the mistakes of a careless reader of the paper: the last of several equal values instead of the first;
//! a value at the edge of an interval counted on the wrong side; n - 1 instead of n; a normalisation, a guard or a step
//! left out; two steps swapped; the new value used instead of the old one.
//!
//! The changed code still runs. Only its results are wrong, and only for inputs with ties, edge values or small counts.

use tree_sitter::Node;

use super::MutantKind;
use super::places::{MutationWalk, descendants, is_keyword};
use crate::code::walk::parts;

/// Functions that are often the last step of a computation. A mutant leaves out the call and returns its first
/// argument.
const LAST_STEPS: &[&str] = &["cumsum", "exp", "flip", "log", "power", "rint", "sort", "square", "transpose", "unique"];

/// Names of variables that hold a count.
const COUNTS: &[&str] = &["count", "m", "n", "runs", "size", "total", "trials"];

impl<'source> MutationWalk<'source> {
    /// Adds mutants for a call of `callee`, whose last component is `name`. `arguments` includes keyword arguments.
    pub(super) fn careless_call(&mut self, node: Node<'_>, callee: Node<'_>, name: &str, arguments: &[Node<'_>]) {
        if arguments.iter().any(|argument| argument.kind().contains("splat")) {
            return;
        }
        let positional: Vec<Node<'_>> = arguments.iter().copied().filter(|it| !is_keyword(*it)).collect();
        let keywords: Vec<(&str, &str)> =
            arguments.iter().filter(|it| is_keyword(**it)).filter_map(|it| self.named(*it)).collect();
        // Some changes are only made to calls of NumPy: in other libraries, functions of these names have other
        // parameters, so the mutants would only crash.
        let object = callee.child_by_field_name("object");
        let library = object.map(|object| self.text(object)).unwrap_or_default();
        let numpy = Some(library).filter(|library| matches!(*library, "np" | "numpy"));
        let has = |wanted: &str| keywords.iter().any(|(name, _)| *name == wanted);
        if let Some(numpy) = numpy {
            match (name, &positional[..]) {
                ("argmin" | "argmax", [values]) => self.last_extreme(node, numpy, name, *values, &keywords),
                ("argsort", [values]) => self.last_of_equals(node, numpy, *values, &keywords),
                _ => {}
            }
        }
        let is_plain = numpy.is_some() || library == "math" || object.is_none();
        match (name, &positional[..]) {
            ("searchsorted", [_, last]) if numpy.is_some() && !has("side") => {
                self.push(MutantKind::Side, last.end_byte()..last.end_byte(), ", side=\"right\"");
            }
            ("searchsorted", [last]) if numpy.is_none() && !has("side") => {
                self.push(MutantKind::Side, last.end_byte()..last.end_byte(), ", side=\"right\"");
            }
            // Change `np.std(x)` and the array method `x.std(axis)`, but not functions of other libraries, such as
            // `other.std(x)`: they may have no parameter `ddof`. Functions of other libraries get the values as an
            // argument, while a method gets at most the number of an axis.
            ("std" | "var", axis) if !has("ddof") && (numpy.is_some() || axis.iter().all(|it| is_number(*it))) => {
                self.sample_deviation(node, arguments);
            }
            ("divide" | "true_divide", [above, below, ..]) => {
                self.becomes(MutantKind::Scale, node, *above);
                self.one_less(*below);
            }
            ("sqrt", [value]) => self.becomes(MutantKind::Scale, node, *value),
            ("abs" | "absolute" | "fabs", [value]) => self.becomes(MutantKind::Guard, node, *value),
            ("clip", [value, ..]) if is_plain => self.becomes(MutantKind::Guard, node, *value),
            ("clip", [value, ..]) => {
                // If the first argument is a number, it is a limit, and `clip` is a method of the values: `x.clip(0,
                // 1)`. Otherwise, the first argument contains the values: `library.clip(x, 0, 1)`.
                let values = object.filter(|_| is_number(*value)).unwrap_or(*value);
                self.becomes(MutantKind::Guard, node, values);
            }
            ("max" | "min" | "maximum" | "minimum" | "fmax" | "fmin", [one, other]) if is_plain => {
                match (is_number(*one), is_number(*other)) {
                    (false, true) => self.becomes(MutantKind::Guard, node, *one),
                    (true, false) => self.becomes(MutantKind::Guard, node, *other),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Adds mutants for `a / b`: without the divisor; with `b` reduced by one, if `b` is a count; and, if `a` is a
    /// difference and `b` is one of its two values, with the other value as the divisor.
    pub(super) fn division(&mut self, node: Node<'_>) {
        let fields = ["left", "operator", "right"].map(|field| node.child_by_field_name(field));
        let [Some(left), Some(operator), Some(right)] = fields else { return };
        if operator.kind() != "/" {
            return;
        }
        if !is_number(right) {
            self.becomes(MutantKind::Scale, node, left);
        }
        self.one_less(right);
        let difference = inner(left);
        let sides = ["left", "right"].map(|field| difference.child_by_field_name(field));
        let minus = difference.child_by_field_name("operator").is_some_and(|it| it.kind() == "-");
        if let ([Some(one), Some(other)], true) = (sides, minus) {
            if self.text(one) == self.text(right) {
                self.becomes(MutantKind::Relative, right, other);
            } else if self.text(other) == self.text(right) {
                self.becomes(MutantKind::Relative, right, one);
            }
        }
    }

    /// Adds a mutant that replaces an `if` without `else`, together with its block, by `pass`.
    pub(super) fn guarded_step(&mut self, node: Node<'_>) {
        let Some(block) = node.child_by_field_name("consequence") else { return };
        let only_raises =
            parts(block).all(|statement| matches!(statement.kind(), "raise_statement" | "pass_statement"));
        // Keep an `if` that defines functions. Without it, code that calls these functions would crash, which is not a
        // plausible mistake.
        let defines = descendants(node).any(|it| it.kind() == "function_definition");
        let may_go = !only_raises && !defines && !self.holds_nonlocal(node);
        if node.child_by_field_name("alternative").is_none() && may_go {
            self.push(MutantKind::Step, node.byte_range(), "pass");
        }
    }

    /// Adds a mutant in which a `while` loop runs at most once.
    pub(super) fn single_round(&mut self, node: Node<'_>) {
        if let Some(word) = node.child(0)
            && !descendants(node).any(|it| matches!(it.kind(), "break_statement" | "continue_statement"))
        {
            self.push(MutantKind::Step, word.byte_range(), "if");
        }
    }

    /// Adds a mutant without the last step, as in `return x` for `return np.sort(x)`.
    pub(super) fn last_step(&mut self, value: Node<'_>) {
        let callee = value.child_by_field_name("function").filter(|_| value.kind() == "call");
        let Some(name) = callee.and_then(|callee| callee.child_by_field_name("attribute")) else { return };
        let first = value.child_by_field_name("arguments").and_then(|arguments| parts(arguments).next());
        if let Some(first) = first.filter(|first| !is_keyword(*first) && !first.kind().contains("splat"))
            && LAST_STEPS.contains(&self.text(name))
        {
            self.becomes(MutantKind::Step, value, first);
        }
    }

    /// Adds mutants that swap two neighbouring statements, if one of them changes a value that the other one reads, and
    /// both can still run after the swap.
    pub(super) fn order(&mut self, node: Node<'_>) {
        let next = node.next_named_sibling().filter(|next| next.kind() == "expression_statement");
        let Some(next) = next else { return };
        let (Some(first), Some(second)) = (parts(node).next(), parts(next).next()) else { return };
        let later = target(second).is_some_and(|(_, left)| self.reads(first, self.base(left)));
        let earlier = target(first).is_some_and(|(plain, left)| {
            (!plain || left.kind() != "identifier") && self.reads(second, self.base(left))
        });
        if later || earlier {
            let between = &self.source[node.end_byte()..next.start_byte()];
            let replacement = [&self.source[next.byte_range()], between, &self.source[node.byte_range()]].concat();
            let unknown = target(second).is_some_and(|(plain, left)| plain && self.reads(second, self.base(left)));
            self.add(MutantKind::Order, node.start_byte()..next.end_byte(), replacement, unknown && !later);
        }
    }

    /// Adds a mutant that takes the last of several equal smallest or largest values.
    fn last_extreme(&mut self, node: Node<'_>, numpy: &str, name: &str, values: Node<'_>, keywords: &[(&str, &str)]) {
        let (length, axis) = match keywords {
            [] => (format!("{numpy}.size(ties)"), String::new()),
            [("axis", axis)] => (format!("{numpy}.shape(ties)[{axis}]"), format!(", axis={axis}")),
            _ => return,
        };
        let body = format!("{length} - 1 - {numpy}.{name}({numpy}.flip(ties{axis}){axis})");
        self.of_ties(node, &body, values);
    }

    /// Adds a mutant of a stable `argsort` in which equal values come in reverse order.
    fn last_of_equals(&mut self, node: Node<'_>, numpy: &str, values: Node<'_>, keywords: &[(&str, &str)]) {
        let stable = |value: &str| matches!(value, "\"stable\"" | "'stable'");
        let axis = match keywords {
            [("kind", kind)] if stable(kind) => "-1",
            [("axis", axis), ("kind", kind)] | [("kind", kind), ("axis", axis)] if stable(kind) => axis,
            _ => return,
        };
        let sorted = format!("{numpy}.argsort({numpy}.flip(ties, axis={axis}), axis={axis}, kind=\"stable\")");
        self.of_ties(node, &format!("{numpy}.shape(ties)[{axis}] - 1 - {sorted}"), values);
    }

    /// Adds a mutant that replaces a call by a lambda of one parameter `ties`, applied to the original argument, so
    /// that the argument is evaluated only once.
    fn of_ties(&mut self, node: Node<'_>, body: &str, values: Node<'_>) {
        let value = &self.source[values.byte_range()];
        let replacement = [b"(lambda ties: ", body.as_bytes(), b")(", value, b")"].concat();
        self.add(MutantKind::Tie, node.byte_range(), replacement, false);
    }

    fn sample_deviation(&mut self, node: Node<'_>, arguments: &[Node<'_>]) {
        match arguments.last() {
            Some(last) => self.push(MutantKind::Degree, last.end_byte()..last.end_byte(), ", ddof=1"),
            None => self.push(MutantKind::Degree, node.end_byte() - 1..node.end_byte() - 1, "ddof=1"),
        }
    }

    /// Adds a mutant in which a count is one less.
    fn one_less(&mut self, node: Node<'_>) {
        let text = self.text(node);
        let count = match node.kind() {
            "identifier" => COUNTS.contains(&text) || text.starts_with("n_"),
            "call" => text.starts_with("len("),
            "attribute" => text.rsplit('.').next() == Some("size"),
            _ => false,
        };
        if count {
            self.push(MutantKind::Degree, node.byte_range(), &format!("({text} - 1)"));
        }
    }

    /// Adds a mutant that replaces an expression by another one, such as a part of it. The new expression gets
    /// parentheses unless it is simple.
    pub(super) fn becomes(&mut self, kind: MutantKind, node: Node<'_>, part: Node<'_>) {
        let text = &self.source[part.byte_range()];
        let simple = matches!(
            part.kind(),
            "identifier"
                | "integer"
                | "float"
                | "attribute"
                | "subscript"
                | "call"
                | "parenthesized_expression"
                | "list"
        ) || (part.kind() == "binary_operator" && node.kind() == "binary_operator");
        let replacement = if simple { text.to_vec() } else { [b"(", text, b")"].concat() };
        self.add(kind, node.byte_range(), replacement, false);
    }

    /// Returns name and value of a keyword argument.
    fn named(&self, argument: Node<'_>) -> Option<(&'source str, &'source str)> {
        let field = |field| argument.child_by_field_name(field).map(|node| self.text(node));
        Some((field("name")?, field("value")?))
    }

    fn holds_nonlocal(&self, node: Node<'_>) -> bool {
        descendants(node).any(|it| it.kind() == "identifier" && self.nonlocal.contains(&self.source[it.byte_range()]))
    }

    /// Returns the variable that an assignment to `left` changes: a name, an attribute, or the object whose item is
    /// set.
    pub(super) fn base(&self, left: Node<'_>) -> &'source str {
        let mut left = left;
        while left.kind() == "subscript" {
            let Some(value) = left.child_by_field_name("value") else { break };
            left = value;
        }
        self.text(left)
    }

    /// Whether a statement reads this name or attribute, in an assigned value or in a call.
    fn reads(&self, statement: Node<'_>, name: &str) -> bool {
        let value = match statement.kind() {
            "assignment" => statement.child_by_field_name("right"),
            _ => Some(statement),
        };
        !name.is_empty() && value.is_some_and(|value| descendants(value).any(|it| self.text(it) == name))
    }
}

/// Returns the target of an assignment, and whether the assignment is plain, that is, doesn't read its target.
fn target(statement: Node<'_>) -> Option<(bool, Node<'_>)> {
    statement.child_by_field_name("left").map(|left| (statement.kind() == "assignment", left))
}

/// Returns the expression inside parentheses.
fn inner(node: Node<'_>) -> Node<'_> {
    let mut node = node;
    while node.kind() == "parenthesized_expression" {
        let Some(child) = parts(node).next() else { break };
        node = child;
    }
    node
}

fn is_number(node: Node<'_>) -> bool {
    match node.kind() {
        "integer" | "float" => true,
        "unary_operator" => node.child_by_field_name("argument").is_some_and(is_number),
        _ => false,
    }
}
