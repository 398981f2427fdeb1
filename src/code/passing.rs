//! Detects functions that only call another function.

use tree_sitter::Node;

use super::module::Module;
use super::mutate::statements;
use super::walk;

impl Module {
    /// Whether a function's body is a single call, possibly inside a `with` statement, whose arguments are names,
    /// attributes and constants. The call's result may be returned or not.
    pub(crate) fn only_passes_a_call_on(&self, function: usize) -> bool {
        let readable = self.encoding.readable(self.source());
        let Some(tree) = walk::parse(&readable) else { return false };
        let after = self.functions()[function].docstring.as_ref().map_or(0, |docstring| docstring.end);
        let own = statements(&tree, &self.functions()[function]).filter(|it| it.start_byte() >= after);
        let mut own: Vec<Node<'_>> = own.filter(|it| it.kind() != "comment").collect();
        if let [outer] = own[..]
            && outer.kind() == "with_statement"
        {
            let Some(block) = outer.child_by_field_name("body") else { return false };
            let mut cursor = block.walk();
            own = block.named_children(&mut cursor).filter(|it| it.kind() != "comment").collect();
            // Skip calls that only prepare the last one, such as `warnings.simplefilter("ignore")`.
            while own.len() > 1 && own[0].kind() == "expression_statement" && is_plain_call(&own[0]) {
                own.remove(0);
            }
        }
        let [statement] = own[..] else { return false };
        is_plain_call(&statement)
    }
}

/// Whether a statement is a single call, returned or not, whose arguments are names, attributes and constants.
fn is_plain_call(statement: &Node<'_>) -> bool {
    if !matches!(statement.kind(), "return_statement" | "expression_statement") {
        return false;
    }
    let Some(mut call) = statement.named_child(0) else { return false };
    if call.kind() == "await" {
        call = call.named_child(0).unwrap_or(call);
    }
    let Some(arguments) = call.child_by_field_name("arguments").filter(|_| call.kind() == "call") else {
        return false;
    };
    let mut cursor = arguments.walk();
    arguments.named_children(&mut cursor).all(|argument| match argument.kind() {
        "keyword_argument" => argument.child_by_field_name("value").is_some_and(|value| is_plain(&value)),
        "list_splat" | "dictionary_splat" => argument.named_child(0).is_some_and(|value| is_plain(&value)),
        _ => is_plain(&argument),
    })
}

/// Whether an expression is a name, an attribute of a name, or a constant.
fn is_plain(expression: &Node<'_>) -> bool {
    match expression.kind() {
        "identifier" | "integer" | "float" | "string" | "true" | "false" | "none" | "comment" => true,
        "attribute" => expression.child_by_field_name("object").is_some_and(|object| is_plain(&object)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_only_passes_a_call_on_if_its_body_is_one_call_with_plain_arguments() {
        for (body, expected) in [
            ("\"\"\"Text.\"\"\"\n    # comment\n    return g(a, self.b, c=1, *args)", true),
            ("return await self.x.g(\n        a,\n        b,\n    )", true),
            ("g(a)", true),
            ("with w.catch():\n        w.filter(\"ignore\")\n        return g(a, axis=a)", true),
            ("with w.catch() as b:\n        return g(a + b)", false),
            ("with w.catch():\n        b = g(a)\n        return b", false),
            ("return g(a + 1)", false),
            ("return sum(x for x in a)", false),
            ("b = g(a)\n    return b", false),
            ("return a", false),
        ] {
            let source = format!("async def f(self, a, *args):\n    {body}\n");
            let module = Module::parse("m.py", source.into_bytes()).unwrap();
            assert_eq!(module.only_passes_a_call_on(0), expected, "{body}");
        }
    }
}
