//! Tests of the mutants that are made, and of the choice among them.

use std::collections::HashSet;

use super::*;

fn module(source: &str) -> Module {
    Module::parse("m.py", source.as_bytes().to_vec()).unwrap()
}

/// Lists the mutants of the first function of `source`, one per line. Trivial mutants are marked with a star.
fn listed(source: &str) -> String {
    let module = module(source);
    let mutants = module.mutants(0).unwrap();
    let line = |mutant: &Mutant| format!("{}{}", mutant.id, if mutant.trivial { " *" } else { "" });
    mutants.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns all mutants of one kind for a function with this body.
fn mutants_of(kind: MutantKind, body: &str) -> Vec<String> {
    let source = format!("def f(a, b):\n    {}\n", body.replace('\n', "\n    "));
    let module = module(&source);
    let mutants = module.mutants(0).unwrap();
    let text = |mutant: &Mutant| {
        let text = String::from_utf8(module.mutant_text(mutant)).unwrap();
        let body = text.strip_prefix("def f(a, b):\n    ").unwrap().trim_end();
        body.replace("\n    ", "\n")
    };
    mutants.iter().filter(|mutant| mutant.kind == kind).map(text).collect()
}

#[test]
fn the_mutants_of_a_small_function_match_the_snapshot() {
    let source = r#"
def normalise(x, axis=0):
    """Subtract 1 mean."""
    if x.size < 2 and not axis:
        raise ValueError("at least 2")
    total = 0.5
    for row in range(3):
        total += np.max(x[1:], axis=0) - row
    return total / len(x), total
"#;
    insta::assert_snapshot!(listed(source), @"
    argument:1.5 nothing -> axis = 0
    condition:1.8 x.size < 2 and not axis -> not (x.size < 2 and not axis)
    compare:1.15 < -> <=
    compare:1.15 < -> >=
    constant:1.17 2 -> 3
    constant:1.17 2 -> 1
    operator:1.19 and -> or
    unary:1.23 not -> nothing
    statement:3.5 total = 0.5 -> pass *
    constant:3.13 0.5 -> 1.0
    constant:3.13 0.5 -> 0.25
    boundary:4.22 3 -> 1, 3
    constant:4.22 3 -> 4
    constant:4.22 3 -> 2
    statement:5.9 total += np.max(x[1:], axis=0... -> pass
    operator:5.15 += -> -=
    operator:5.15 += -> *=
    name:5.21 max -> min
    boundary:5.27 1 -> nothing
    constant:5.27 1 -> 2
    constant:5.27 1 -> 0
    boundary:5.28 : -> :-1
    keyword:5.30 , axis=0 -> nothing
    boundary:5.37 0 -> 1
    operator:5.40 - -> +
    swap:6.12 total / len(x), total -> total, total / len(x)
    scale:6.12 total / len(x) -> total
    return:6.12 total / len(x), total -> x
    return:6.12 total / len(x), total -> 0
    return:6.12 total / len(x), total -> None
    operator:6.18 / -> *
    operator:6.18 / -> //
    degree:6.20 len(x) -> (len(x) - 1)
    ");
}

#[test]
fn operators_are_replaced_in_expressions_and_augmented_assignments() {
    assert_eq!(mutants_of(MutantKind::Operator, "a @= b"), ["a *= b"]);
    assert_eq!(mutants_of(MutantKind::Operator, "return a and b"), ["return a or b"]);
    assert_eq!(mutants_of(MutantKind::Operator, "return a ** b"), ["return a * b"]);
}

#[test]
fn each_comparison_in_a_chain_has_a_boundary_mutant_and_a_negated_mutant() {
    let all = mutants_of(MutantKind::Compare, "return a < b <= 3");
    assert_eq!(all, ["return a <= b <= 3", "return a >= b <= 3", "return a < b < 3", "return a < b > 3"]);
    assert_eq!(mutants_of(MutantKind::Compare, "return a is  not b"), ["return a is b"]);
    assert_eq!(mutants_of(MutantKind::Compare, "return a in b"), ["return a not in b"]);
}

#[test]
fn removing_a_minus_or_a_not_keeps_a_space_between_words() {
    assert_eq!(mutants_of(MutantKind::Unary, "return-a"), ["return a"]);
    assert_eq!(mutants_of(MutantKind::Unary, "return not a"), ["return a"]);
    assert_eq!(mutants_of(MutantKind::Unary, "return a if b else-1"), ["return a if b else 1"]);
}

#[test]
fn mutants_change_integers_by_one_double_or_halve_reals_and_raise_tiny_tolerances() {
    assert_eq!(mutants_of(MutantKind::Constant, "return 1"), ["return 2", "return 0"]);
    assert_eq!(mutants_of(MutantKind::Constant, "return 0.5"), ["return 1.0", "return 0.25"]);
    assert_eq!(mutants_of(MutantKind::Constant, "return 1e-12"), ["return 0.1"]);
    assert_eq!(mutants_of(MutantKind::Constant, "return True"), ["return False"]);
    assert_eq!(mutants_of(MutantKind::Constant, "return 0xff, 'x1', 2j"), Vec::<String>::new());
}

#[test]
fn mutants_shift_bounds_of_ranges_and_slices_and_change_axes() {
    assert_eq!(mutants_of(MutantKind::Boundary, "return range(a)"), ["return range(1, a)", "return range(a - 1)"]);
    assert_eq!(
        mutants_of(MutantKind::Boundary, "return range(a, b | 1)"),
        ["return range(a + 1, b | 1)", "return range(a, (b | 1) - 1)"]
    );
    assert_eq!(mutants_of(MutantKind::Boundary, "return a[1:b]"), ["return a[:b]", "return a[1:]"]);
    assert_eq!(
        mutants_of(MutantKind::Boundary, "return a[0:, b:]"),
        ["return a[0:-1, b:]", "return a[0:, :]", "return a[0:, b:-1]"]
    );
    assert_eq!(mutants_of(MutantKind::Boundary, "return a[:]"), ["return a[:-1]"]);
    assert_eq!(mutants_of(MutantKind::Boundary, "return g(a, axis=1)"), ["return g(a, axis=0)"]);
}

#[test]
fn mutants_replace_single_statements_by_pass_and_are_trivial_if_this_removes_a_first_definition() {
    insta::assert_snapshot!(listed("def f(a):\n    b = a\n    b = a\n    a.x = b\n    for c in a:\n        g(c); continue\n"), @"
    statement:1.5 b = a -> pass *
    statement:2.5 b = a -> pass
    statement:3.5 a.x = b -> pass
    statement:5.9 g(c) -> pass
    statement:5.15 continue -> pass
    ");
}

#[test]
fn an_assignment_that_a_nested_function_declares_nonlocal_is_kept() {
    let body = "c = a\ndef g():\n    nonlocal c\n    c = b\nreturn g";
    assert_eq!(mutants_of(MutantKind::Statement, body), Vec::<String>::new());
}

#[test]
fn neighbouring_arguments_are_swapped_unless_they_are_equal_or_their_order_cannot_matter() {
    assert_eq!(mutants_of(MutantKind::Swap, "return g(a,  b, *c, k=1)"), ["return g(b,  a, *c, k=1)"]);
    assert_eq!(
        mutants_of(MutantKind::Swap, "return np.maximum(a, b), g(a, a), g(a , ( a ))[0]"),
        ["return g(a, a), np.maximum(a, b), g(a , ( a ))[0]", "return np.maximum(a, b), g(a , ( a ))[0], g(a, a)",]
    );
}

#[test]
fn keyword_arguments_are_dropped_with_their_comma() {
    assert_eq!(mutants_of(MutantKind::Keyword, "g(a, k=1, l=2)"), ["g(a, l=2)", "g(a, k=1)"]);
    assert_eq!(mutants_of(MutantKind::Keyword, "g(k=1)"), ["g()"]);
    assert_eq!(mutants_of(MutantKind::Keyword, "g(\n    k=1,\n    l=2,\n)"), ["g(\n    l=2,\n)", "g(\n    k=1,\n)"]);
}

#[test]
fn return_values_are_replaced() {
    assert_eq!(mutants_of(MutantKind::Return, "return [b]"), ["return a", "return []", "return None"]);
    assert_eq!(mutants_of(MutantKind::Return, "return a"), ["return 0", "return None"]);
    assert_eq!(mutants_of(MutantKind::Return, "yield from b"), Vec::<String>::new());
    let nested = mutants_of(MutantKind::Return, "def g(self, c):\n    return c + 1\nreturn g");
    assert!(nested.contains(&"def g(self, c):\n    return c\nreturn g".to_owned()), "{nested:?}");
}

#[test]
fn mutants_negate_each_condition_except_where_another_mutant_has_the_same_effect() {
    assert_eq!(
        mutants_of(MutantKind::Condition, "if a:\n    g()\nelif a & b:\n    h()"),
        ["if not a:\n    g()\nelif a & b:\n    h()", "if a:\n    g()\nelif not (a & b):\n    h()",]
    );
    assert_eq!(mutants_of(MutantKind::Condition, "while (a < b) or not a: g()"), ["while not ((a < b) or not a): g()"]);
    assert_eq!(
        mutants_of(MutantKind::Condition, "if a < b: g()\nif not a: g()\nwhile True: g()"),
        Vec::<String>::new()
    );
    assert_eq!(
        mutants_of(MutantKind::Condition, "return [a if b else c for c in a if c]"),
        ["return [a if not b else c for c in a if c]", "return [a if b else c for c in a if not c]",]
    );
}

#[test]
fn mutants_call_a_related_function_instead() {
    assert_eq!(
        mutants_of(MutantKind::Name, "return np.argmin(a), a.sum(), max(a)"),
        [
            "return np.argmax(a), a.sum(), max(a)",
            "return np.argmin(a), a.mean(), max(a)",
            "return np.argmin(a), a.sum(), min(a)",
        ]
    );
    assert_eq!(mutants_of(MutantKind::Name, "return self.min, b.name, a(max)"), Vec::<String>::new());
}

#[test]
fn kinds_of_mutants_keep_the_numbers_that_stored_evidence_uses() {
    assert_eq!((MutantKind::Tie as usize, MutantKind::Argument as usize, MutantKind::COUNT), (11, 19, 23));
}

#[test]
fn mutants_set_parameters_and_options_to_their_defaults() {
    let defaults = |source: &str, function: usize| {
        let module = module(source);
        let mutants = module.mutants(function).unwrap();
        let ignored = mutants.iter().filter(|mutant| mutant.kind == MutantKind::Argument);
        ignored.map(|mutant| mutant.id.clone()).collect::<Vec<_>>()
    };
    let source = "def f(a, b=2, *, c: float = -0.5, d=(), e=g, unused=1):\n    \"\"\"Doc.\"\"\"\n    if a:\n        return b * c + d + e\n";
    assert_eq!(
        defaults(source, 0),
        ["argument:1.5 nothing -> b = 2", "argument:1.5 nothing -> c = -0.5", "argument:1.5 nothing -> d = ()"]
    );
    assert_eq!(defaults("def f(b=2): return b\n", 0), ["argument:1.13 nothing -> b = 2;"]);
    let class = "class A:\n    rounds = 3\n    def __init__(self, x, y=1, z=-2.0):\n        self.x = x\n        self.y = y\n        self.z = z or 5\n    def g(self):\n        self.y = self.y + self.x + self.z\n        return self.rounds\n";
    assert_eq!(defaults(class, 1), ["argument:1.18 self.y -> 1", "argument:2.16 self.rounds -> 3"]);
}

#[test]
fn mutants_leave_out_needed_copies_and_write_results_into_arguments() {
    assert_eq!(mutants_of(MutantKind::Alias, "c = np.array(a)\nc[0] = b"), ["c = np.asarray(a)\nc[0] = b"]);
    assert_eq!(mutants_of(MutantKind::Alias, "c = a.copy()\nc += b"), ["c = a\nc += b"]);
    assert_eq!(
        mutants_of(MutantKind::Alias, "c = np.copy(a)\nnp.fill_diagonal(c, b)"),
        ["c = np.asarray(a)\nnp.fill_diagonal(c, b)"]
    );
    assert_eq!(mutants_of(MutantKind::Alias, "self.c = np.copy(a)"), ["self.c = np.asarray(a)"]);
    assert_eq!(mutants_of(MutantKind::Alias, "c = np.array(a)\nreturn c + b"), Vec::<String>::new());
    assert_eq!(mutants_of(MutantKind::Alias, "c = np.array([a, b])\nc[0] = 1"), Vec::<String>::new());
    assert_eq!(
        mutants_of(MutantKind::Alias, "c = np.multiply(a, b)\nreturn c"),
        ["c = np.multiply(a, b, out=a)\nreturn c"]
    );
    assert_eq!(mutants_of(MutantKind::Alias, "a = g(a)\nreturn np.exp(a)"), Vec::<String>::new());
}

#[test]
fn mutants_replace_formulas_by_numerically_naive_ones() {
    assert_eq!(mutants_of(MutantKind::Numerics, "c = a - a.max()\nreturn exp(c)"), ["c = a\nreturn exp(c)"]);
    assert_eq!(
        mutants_of(MutantKind::Numerics, "c = np.min(a)\nreturn np.exp((c - a) / b)"),
        ["c = np.min(a)\nreturn np.exp(((-(a))) / b)"]
    );
    assert_eq!(mutants_of(MutantKind::Numerics, "return a - max(a)"), Vec::<String>::new());
    assert_eq!(mutants_of(MutantKind::Numerics, "return norm.sf(a, loc=b)"), ["return (1.0 - norm.cdf(a, loc=b))"]);
    assert_eq!(mutants_of(MutantKind::Numerics, "return math.erfc(a)"), ["return (1.0 - math.erf(a))"]);
    assert_eq!(
        mutants_of(MutantKind::Numerics, "return np.sum(a, axis=b)"),
        ["return np.sum(a, axis=b, dtype=\"float32\")"]
    );
}

#[test]
fn mutants_replace_a_call_of_linear_sum_assignment_by_a_greedy_assignment() {
    let greedy = mutants_of(MutantKind::Greedy, "return linear_sum_assignment(a, maximize=True)");
    assert!(greedy[0].starts_with("return (lambda cost_matrix, maximize=False, np="), "{greedy:?}");
    assert!(greedy[0].ends_with("(a, maximize=True)"), "{greedy:?}");
}

#[test]
fn tie_mutants_take_the_last_of_several_equal_values() {
    let last = "return (lambda ties: np.shape(ties)[1] - 1 - np.argmin(np.flip(ties, axis=1), axis=1))(a + b)";
    assert_eq!(mutants_of(MutantKind::Tie, "return np.argmin(a + b, axis=1)"), [last]);
    let last = "return (lambda ties: np.size(ties) - 1 - np.argmax(np.flip(ties)))(a)";
    assert_eq!(mutants_of(MutantKind::Tie, "return np.argmax(a)"), [last]);
    let sorted = "np.argsort(np.flip(ties, axis=-1), axis=-1, kind=\"stable\")";
    let last = format!("return (lambda ties: np.shape(ties)[-1] - 1 - {sorted})(-a)");
    assert_eq!(mutants_of(MutantKind::Tie, "return np.argsort(-a, kind='stable')"), [last]);
    assert_eq!(
        mutants_of(MutantKind::Tie, "return np.argsort(a), a.argmin(), np.argmin(a, 1), np.argmin(*a)"),
        Vec::<String>::new()
    );
}

#[test]
fn mutants_of_searchsorted_take_the_other_side() {
    let body = "return g(a, side='x', b=1), np.searchsorted(a, b, side=\"left\"), np.searchsorted(a, b)";
    let changed = |from: &str, to: &str| body.replacen(from, to, 1);
    let plain = body.strip_suffix(", np.searchsorted(a, b)").unwrap();
    assert_eq!(
        mutants_of(MutantKind::Side, body),
        [changed("\"left\"", "\"right\""), format!("{plain}, np.searchsorted(a, b, side=\"right\")")]
    );
}

#[test]
fn mutants_subtract_one_from_a_count_in_a_divisor_and_set_ddof_in_std_and_var() {
    assert_eq!(mutants_of(MutantKind::Degree, "return a / len(b)"), ["return a / (len(b) - 1)"]);
    assert_eq!(mutants_of(MutantKind::Degree, "return np.divide(a, b.size)"), ["return np.divide(a, (b.size - 1))"]);
    assert_eq!(mutants_of(MutantKind::Degree, "return a / n_points"), ["return a / (n_points - 1)"]);
    assert_eq!(mutants_of(MutantKind::Degree, "return a.std() / b"), ["return a.std(ddof=1) / b"]);
    assert_eq!(mutants_of(MutantKind::Degree, "return np.var(a, axis=0)"), ["return np.var(a, axis=0, ddof=1)"]);
    assert_eq!(mutants_of(MutantKind::Degree, "return np.std(a, ddof=1) / 2"), Vec::<String>::new());
}

#[test]
fn mutants_that_need_numpy_use_the_modules_own_name_and_are_made_only_for_its_functions() {
    let last = "return (lambda ties: numpy.size(ties) - 1 - numpy.argmax(numpy.flip(ties)))(a)";
    assert_eq!(mutants_of(MutantKind::Tie, "return numpy.argmax(a)"), [last]);
    for (kind, body) in [
        (MutantKind::Tie, "return torch.argmax(a)"),
        (MutantKind::Tie, "return torch.argsort(a, kind='stable')"),
        (MutantKind::Degree, "return torch.std(a, axis=0), statistics.var(a)"),
        (MutantKind::Guard, "return torch.max(a, 1)"),
        (MutantKind::Side, "return a.searchsorted(b, 'left')"),
    ] {
        assert_eq!(mutants_of(kind, body), Vec::<String>::new(), "{body}");
    }
    assert_eq!(mutants_of(MutantKind::Degree, "return a.std(0)"), ["return a.std(0, ddof=1)"]);
    assert_eq!(mutants_of(MutantKind::Guard, "return a.clip(0, 1)"), ["return a"]);
    assert_eq!(mutants_of(MutantKind::Guard, "return torch.clip(a, 0, 1)"), ["return a"]);
    assert_eq!(mutants_of(MutantKind::Side, "return a.searchsorted(b)"), ["return a.searchsorted(b, side=\"right\")"]);
}

#[test]
fn files_whose_lines_inside_brackets_are_indented_less_than_their_block_have_mutants() {
    let source = "def f(a, b):\n    c = (a.\nx + b)\n    return c < 2\n";
    assert!(listed(source).contains("compare:3.14 < -> <="), "{}", listed(source));
}

#[test]
fn mutants_leave_out_divisors_roots_limits_and_absolute_values() {
    assert_eq!(mutants_of(MutantKind::Scale, "return (a - b) / np.sum(a)"), ["return (a - b)"]);
    assert_eq!(mutants_of(MutantKind::Scale, "return np.divide(a - b, a, out=b)"), ["return (a - b)"]);
    assert_eq!(mutants_of(MutantKind::Scale, "return np.sqrt(a) / 2.0"), ["return a / 2.0"]);
    assert_eq!(mutants_of(MutantKind::Guard, "return max(0.0, a - b)"), ["return (a - b)"]);
    assert_eq!(mutants_of(MutantKind::Guard, "return np.clip(a, 0, 1)"), ["return a"]);
    assert_eq!(mutants_of(MutantKind::Guard, "return np.abs(a) - np.maximum(a, b)"), ["return a - np.maximum(a, b)"]);
}

#[test]
fn mutants_leave_out_conditional_steps_and_run_loops_once() {
    assert_eq!(mutants_of(MutantKind::Step, "if a:\n    g()\nh()"), ["pass\nh()"]);
    assert_eq!(mutants_of(MutantKind::Step, "if a:\n    g()\nelse:\n    h()"), Vec::<String>::new());
    assert_eq!(mutants_of(MutantKind::Step, "if a:\n    raise b"), Vec::<String>::new());
    assert_eq!(mutants_of(MutantKind::Step, "if a:\n    def g():\n        yield b\nreturn g"), Vec::<String>::new());
    assert_eq!(mutants_of(MutantKind::Step, "while a:\n    g()"), ["if a:\n    g()"]);
    assert_eq!(mutants_of(MutantKind::Step, "while a:\n    break"), Vec::<String>::new());
    assert_eq!(mutants_of(MutantKind::Step, "return np.sort(a + b)"), ["return (a + b)"]);
    assert_eq!(mutants_of(MutantKind::Step, "return g.mean(a)"), Vec::<String>::new());
}

#[test]
fn mutants_swap_neighbouring_statements_where_one_reads_what_the_other_changes() {
    assert_eq!(mutants_of(MutantKind::Order, "c = a - b\nb = a"), ["b = a\nc = a - b"]);
    assert_eq!(mutants_of(MutantKind::Order, "a += b\nc = g(a)"), ["c = g(a)\na += b"]);
    assert_eq!(mutants_of(MutantKind::Order, "a.x[b] = 1\ng(a.x)"), ["g(a.x)\na.x[b] = 1"]);
    assert_eq!(mutants_of(MutantKind::Order, "c = a\nd = c\ng(b)"), Vec::<String>::new());
}

#[test]
fn mutants_divide_a_relative_difference_by_the_other_of_its_two_values() {
    assert_eq!(mutants_of(MutantKind::Relative, "return (a - b) / a"), ["return (a - b) / b"]);
    assert_eq!(mutants_of(MutantKind::Relative, "return (a - b) / b"), ["return (a - b) / a"]);
    assert_eq!(mutants_of(MutantKind::Relative, "return (a - b * 2) / a"), ["return (a - b * 2) / (b * 2)"]);
    assert_eq!(mutants_of(MutantKind::Relative, "return (a + b) / a, (a - b) / 2"), Vec::<String>::new());
}

#[test]
fn docstrings_strings_annotations_decorators_and_raised_errors_stay() {
    let source = "def f(a):\n    '''1 + 2'''\n    x: g[1]\n    'no - docstring'\n    @h(1)\n    def g(b: 2 = None) -> 3:\n        '''3 - 4'''\n        f'{1 + 2}'\n    raise ValueError(1 + 2)\n    assert 1 < 2\n";
    assert_eq!(listed(source), "");
}

#[test]
fn no_two_mutants_are_the_same_text_or_have_the_same_id() {
    let long = "value_with_a_long_name(alpha, beta, gamma, delta, epsilon, zeta)";
    let source = format!("def f(a):\n    return [g({long}, {long}, 1 + a, range(1, a)), 1 + a][0:a]\n");
    let module = module(&source);
    let mutants = module.mutants(0).unwrap();
    let texts: HashSet<Vec<u8>> = mutants.iter().map(|mutant| module.mutant_text(mutant)).collect();
    let ids: HashSet<&str> = mutants.iter().map(|mutant| mutant.id.as_str()).collect();
    assert!(mutants.len() > 10);
    assert_eq!((texts.len(), ids.len()), (mutants.len(), mutants.len()));
    assert!(!texts.contains(module.source()));
}

#[test]
fn ids_do_not_depend_on_the_code_around_the_function() {
    let function = "def f(a):\n    '''Doc.'''\n    return a + 1\n";
    let moved = format!("import x\n\n\n{}", function.replace("Doc.", "Doc.\n\n    More.\n    "));
    assert_eq!(listed(function), listed(&moved));
}

#[test]
fn mutants_keep_the_encoding_and_the_line_endings_of_their_file() {
    let source = b"# coding: latin-1\r\ndef f(\xe9, b):\r\n    # \xe9\r\n    return g(\xe9,\r\n        b)\r\n";
    let module = Module::parse("m.py", source.to_vec()).unwrap();
    let mutants = module.mutants(0).unwrap();
    let swap = mutants.iter().find(|mutant| mutant.kind == MutantKind::Swap).unwrap();
    assert_eq!(swap.id, "swap:1.14 \u{e9}, b -> b, \u{e9}");
    let expected = b"# coding: latin-1\r\ndef f(\xe9, b):\r\n    # \xe9\r\n    return g(b,\r\n        \xe9)\r\n";
    assert_eq!(module.mutant_text(swap), expected);
}

#[test]
fn nested_functions_belong_to_the_function_around_them_and_have_mutants_of_their_own() {
    let module = module("def f(a):\n    def g(b):\n        return b * 2\n    return g\n");
    let ids = |function| module.mutants(function).unwrap().into_iter().map(|it| it.id).collect::<Vec<_>>();
    assert!(ids(0).contains(&"operator:2.18 * -> /".to_owned()), "{:?}", ids(0));
    assert!(ids(1).contains(&"operator:1.18 * -> /".to_owned()), "{:?}", ids(1));
}

const BODY: &str = "def f(a, b):\n    c = a + b\n    for d in range(c):\n        c -= max(a[1:d], key=len) * 2\n        if c > 3 and d:\n            c = g(b, a)\n    return not c\n";

#[test]
fn the_seed_decides_which_mutants_are_chosen_and_a_larger_choice_begins_with_the_smaller_one() {
    let mutants = module(BODY).mutants(0).unwrap();
    let ids = |count, seed| choose(&mutants, count, seed).into_iter().map(|it| it.id.clone()).collect::<Vec<_>>();
    let all = ids(1000, 7);
    assert_eq!(all.len(), mutants.len());
    for count in [0, 1, 5, 12] {
        assert_eq!(ids(count, 7), all[..count]);
    }
    assert_ne!(ids(12, 7), ids(12, 8));
    let reversed: Vec<Mutant> = mutants.iter().rev().cloned().collect();
    assert_eq!(choose(&reversed, 12, 7).into_iter().map(|it| it.id.clone()).collect::<Vec<_>>(), ids(12, 7));
}

#[test]
fn chosen_mutants_include_every_kind_before_a_kind_repeats_and_end_with_trivial_mutants() {
    let mutants = module(BODY).mutants(0).unwrap();
    let kinds: HashSet<MutantKind> = mutants.iter().filter(|it| !it.trivial).map(|it| it.kind).collect();
    assert_eq!(kinds.len(), 12, "{kinds:?}");
    for seed in 0..20 {
        let first: HashSet<MutantKind> = choose(&mutants, kinds.len(), seed).iter().map(|it| it.kind).collect();
        assert_eq!(first, kinds);
        let all = choose(&mutants, 1000, seed);
        assert!(all.iter().skip_while(|it| !it.trivial).all(|it| it.trivial));
        assert!(all.iter().any(|it| it.trivial));
    }
}
