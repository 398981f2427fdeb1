//! Tables of replacements for operators, functions and numbers.

/// Returns wrong operators to replace an operator, in an expression or before the `=` of an augmented assignment.
pub(super) fn operators(operator: &str) -> &'static [&'static str] {
    match operator {
        "+" => &["-", "*"],
        "-" | "%" => &["+"],
        "*" => &["/", "+"],
        "/" => &["*", "//"],
        "//" => &["/", "*"],
        "**" | "@" => &["*"],
        "&" => &["|"],
        "|" | "^" => &["&"],
        "<<" => &[">>"],
        ">>" => &["<<"],
        "and" => &["or"],
        "or" => &["and"],
        _ => &[],
    }
}

/// Returns wrong operators to replace a comparison operator: its opposite and, for an order such as `<`, the operator
/// that differs only for equal values.
pub(super) fn comparisons(operator: &str) -> &'static [&'static str] {
    match operator {
        "<" => &["<=", ">="],
        "<=" => &["<", ">"],
        ">" => &[">=", "<="],
        ">=" => &[">", "<"],
        "==" => &["!="],
        "!=" => &["=="],
        "is" => &["is not"],
        "is not" => &["is"],
        "in" => &["not in"],
        "not in" => &["in"],
        _ => &[],
    }
}

/// Functions called as attributes, such as `np.max`, each with its replacement, which takes the same arguments.
const ATTRIBUTES: &[(&str, &str)] = &[
    ("abs", "negative"),
    ("add", "subtract"),
    ("all", "any"),
    ("any", "all"),
    ("argmax", "argmin"),
    ("argmin", "argmax"),
    ("ceil", "floor"),
    ("column_stack", "vstack"),
    ("cos", "sin"),
    ("cummax", "cummin"),
    ("cumprod", "cumsum"),
    ("cumsum", "cumprod"),
    ("divide", "multiply"),
    ("endswith", "startswith"),
    ("exp", "expm1"),
    ("flatnonzero", "argsort"),
    ("floor", "ceil"),
    ("fmax", "fmin"),
    ("fmin", "fmax"),
    ("greater", "greater_equal"),
    ("greater_equal", "greater"),
    ("hstack", "concatenate"),
    ("less", "less_equal"),
    ("less_equal", "less"),
    ("log", "log1p"),
    ("log1p", "log"),
    ("logical_and", "logical_or"),
    ("logical_or", "logical_and"),
    ("max", "min"),
    ("maximum", "minimum"),
    ("mean", "sum"),
    ("median", "mean"),
    ("min", "max"),
    ("minimum", "maximum"),
    ("multiply", "add"),
    ("nanmax", "nanmin"),
    ("nanmean", "nansum"),
    ("nanmin", "nanmax"),
    ("nansum", "nanmean"),
    ("normal", "uniform"),
    ("ones", "zeros"),
    ("ones_like", "zeros_like"),
    ("outer", "multiply"),
    ("prod", "sum"),
    ("rint", "floor"),
    ("round", "floor"),
    ("sin", "cos"),
    ("sqrt", "square"),
    ("square", "abs"),
    ("startswith", "endswith"),
    ("std", "var"),
    ("subtract", "add"),
    ("sum", "mean"),
    ("tanh", "sinh"),
    ("tril", "triu"),
    ("triu", "tril"),
    ("var", "std"),
    ("zeros", "ones"),
    ("zeros_like", "ones_like"),
];

/// Built-in functions, each with its replacement.
const BUILT_IN: &[(&str, &str)] = &[
    ("all", "any"),
    ("any", "all"),
    ("int", "round"),
    ("max", "min"),
    ("min", "max"),
    ("reversed", "list"),
    ("round", "int"),
    ("sorted", "list"),
    ("sum", "max"),
];

/// Functions whose result doesn't change, except for rounding, if their arguments are swapped.
const SYMMETRIC: &[&str] = &[
    "add",
    "allclose",
    "array_equal",
    "bitwise_and",
    "bitwise_or",
    "equal",
    "fmax",
    "fmin",
    "gcd",
    "hypot",
    "inner",
    "intersect1d",
    "isclose",
    "lcm",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "max",
    "maximum",
    "min",
    "minimum",
    "multiply",
    "not_equal",
    "print",
    "union1d",
    "vdot",
];

/// Returns the replacement of a function called as an attribute.
pub(super) fn attribute(name: &str) -> Option<&'static str> {
    lookup(ATTRIBUTES, name)
}

/// Returns the replacement of a built-in function.
pub(super) fn built_in(name: &str) -> Option<&'static str> {
    lookup(BUILT_IN, name)
}

/// Whether swapping the arguments of a function with this name (the last part of its dotted name) has no effect.
pub(super) fn is_symmetric(name: &str) -> bool {
    SYMMETRIC.contains(&name)
}

fn lookup(table: &[(&'static str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(from, _)| *from == name).map(|(_, to)| *to)
}

/// Returns wrong numbers to replace an integer literal; none if the literal is not plain decimal.
pub(super) fn integers(text: &str) -> Vec<String> {
    match text.parse::<u64>() {
        Ok(0) => vec!["1".to_owned()],
        Ok(number) => number.checked_add(1).into_iter().chain([number - 1]).map(|number| number.to_string()).collect(),
        Err(_) => Vec::new(),
    }
}

/// Returns wrong numbers to replace a float literal. A number below 1e-6 is a tolerance or a guard against a division
/// by zero; no experiment could distinguish it from twice its value, so it is replaced by 0.1.
pub(super) fn floats(text: &str) -> Vec<String> {
    let Ok(number) = text.replace('_', "").parse::<f64>() else { return Vec::new() };
    let written = |number: f64| format!("{number:?}");
    if number == 0.0 {
        vec![written(1.0)]
    } else if number < 1e-6 {
        vec![written(0.1)]
    } else if (number * 2.0).is_finite() {
        vec![written(number * 2.0), written(number / 2.0)]
    } else {
        Vec::new()
    }
}
