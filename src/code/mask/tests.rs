//! Tests of masking: one test per rule, comparing exact bytes.

use super::*;

/// Masks the named functions of `source`, each with the description "Does it.". Asserts that masking gives the same
/// bytes with and without checking the result.
fn mask_bytes(source: &[u8], names: &[&str]) -> Vec<u8> {
    let module = Module::parse("m.py", source.to_vec()).unwrap();
    let target = |name: &&str| MaskTarget { function: module.find(name).unwrap(), description: Some("Does it.") };
    let targets: Vec<_> = names.iter().map(target).collect();
    let masked = module.mask_checked(&targets).unwrap();
    assert_eq!(masked, module.mask(&targets).unwrap());
    masked
}

/// Same as [`mask_bytes`], for text.
fn mask(source: &str, names: &[&str]) -> String {
    String::from_utf8(mask_bytes(source.as_bytes(), names)).unwrap()
}

#[test]
fn a_body_becomes_its_docstring_and_a_raise() {
    assert_eq!(
        mask("x = 1\ndef f(a):\n    \"\"\"Adds\n      one.\"\"\"\n    b = a + 1\n    return b\ny = 2\n", &["f"]),
        "x = 1\ndef f(a):\n    \"\"\"Adds\n      one.\"\"\"\n    raise NotImplementedError\ny = 2\n"
    );
}

#[test]
fn a_body_without_docstring_gets_the_description() {
    assert_eq!(
        mask("def f(a):\n    return a\n", &["f"]),
        "def f(a):\n    \"\"\"Does it.\"\"\"\n    raise NotImplementedError\n"
    );
}

#[test]
fn a_body_without_docstring_and_description_is_replaced_by_the_raise_statement_alone() {
    let module = Module::parse("m.py", b"def f(a):\n    return a\n".to_vec()).unwrap();
    for description in [None, Some("  ")] {
        let masked = module.mask_checked(&[MaskTarget { function: 0, description }]).unwrap();
        assert_eq!(masked, b"def f(a):\n    raise NotImplementedError\n");
    }
}

#[test]
fn strings_that_are_not_docstrings_are_removed_with_the_body() {
    for body in
        ["f\"doc {a}\"", "b\"doc\"", "rb'doc'", "\"a\" f\"{a}\"", "\"a\", \"b\"", "\"a\".strip()", "(\"a\" + \"b\")"]
    {
        assert_eq!(
            mask(&format!("def f(a):\n    {body}\n    return a\n"), &["f"]),
            "def f(a):\n    \"\"\"Does it.\"\"\"\n    raise NotImplementedError\n",
            "{body}"
        );
    }
}

#[test]
fn docstrings_of_every_spelling_are_kept() {
    for doc in ["'d'", "r'''d\\e'''", "u\"d\"", "R'd'", "\"a\" 'b'", "(\"a\"\n 'b')", "\"\"\"d\n\n  e\n\"\"\"", "''"] {
        assert_eq!(
            mask(&format!("def f(a):\n    {doc}\n    return a\n"), &["f"]),
            format!("def f(a):\n    {doc}\n    raise NotImplementedError\n"),
        );
    }
}

#[test]
fn a_signature_over_several_lines_is_kept() {
    let header = "def f(\n    a: int = 1,  # first\n    *,\n    b: 'x:y' = {1: 2}[1],\n    key=lambda z: z,\n) -> (\n    int\n):";
    assert_eq!(
        mask(&format!("{header}\n    return a\n"), &["f"]),
        format!("{header}\n    \"\"\"Does it.\"\"\"\n    raise NotImplementedError\n")
    );
}

#[test]
fn decorators_and_the_comments_above_a_masked_function_are_kept() {
    let head = "# about f\n@a.b(\n    lambda: 1\n)\n# between\n@c\ndef f(x):";
    assert_eq!(
        mask(&format!("{head}\n    return x\n"), &["f"]),
        format!("{head}\n    \"\"\"Does it.\"\"\"\n    raise NotImplementedError\n")
    );
}

#[test]
fn one_line_bodies_become_lines_of_their_own() {
    for (source, expected) in [
        ("def f(): return 1\n", "def f():\n    \"\"\"Does it.\"\"\"\n    raise NotImplementedError\n"),
        ("def f(): \"doc\"; x = 1; return x\n", "def f():\n    \"doc\"\n    raise NotImplementedError\n"),
        ("def f(): '''a\nb'''; return x # c\ny\n", "def f():\n    '''a\nb'''\n    raise NotImplementedError\ny\n"),
        ("def f(): \\\n  return 1\n", "def f():\n  \"\"\"Does it.\"\"\"\n  raise NotImplementedError\n"),
        ("def f(): \\\nreturn 1\n", "def f():\n    \"\"\"Does it.\"\"\"\n    raise NotImplementedError\n"),
        (
            "class A:\n\tdef f(self): ...\n",
            "class A:\n\tdef f(self):\n\t\t\"\"\"Does it.\"\"\"\n\t\traise NotImplementedError\n",
        ),
        (
            "class A:\n  def f(self): ...\n",
            "class A:\n  def f(self):\n      \"\"\"Does it.\"\"\"\n      raise NotImplementedError\n",
        ),
    ] {
        assert_eq!(mask(source, &["f"].map(|f| if source.starts_with("class") { "A.f" } else { f })), expected);
    }
}

#[test]
fn comments_and_blank_lines_before_the_first_statement_are_removed() {
    for between in ["\n    # hint\n", "\n\n\n", "  # hint\n# at the margin\n", "\n\t# tab\n", "  \n\x0c\n"] {
        assert_eq!(
            mask(&format!("def f(a):{between}    'doc'\n    return a\n"), &["f"]),
            "def f(a):\n    'doc'\n    raise NotImplementedError\n",
            "{between:?}"
        );
    }
}

#[test]
fn a_type_comment_behind_the_colon_is_part_of_the_signature() {
    assert_eq!(
        mask("def f(a):  # type: (int) -> int\n    return a\n", &["f"]),
        "def f(a):  # type: (int) -> int\n    \"\"\"Does it.\"\"\"\n    raise NotImplementedError\n"
    );
}

#[test]
fn comments_after_the_last_statement_are_removed_while_they_are_indented_deeper_than_def() {
    assert_eq!(
        mask(
            "if x:\n  def f(a):\n    'd'\n    return a  # hint\n\n    # hint\n   # hint\n\n  # stays\n   # stays too\n  y\n",
            &["f"]
        ),
        "if x:\n  def f(a):\n    'd'\n    raise NotImplementedError\n\n  # stays\n   # stays too\n  y\n"
    );
}

#[test]
fn blank_lines_after_the_body_stay() {
    assert_eq!(
        mask("def f():\n    'd'\n    return 1   \n\n\ndef g(): pass\n", &["f"]),
        "def f():\n    'd'\n    raise NotImplementedError\n\n\ndef g(): pass\n"
    );
}

#[test]
fn a_comment_at_the_margin_inside_the_body_does_not_end_it() {
    assert_eq!(
        mask("def f():\n    'd'\n    if x:\n        y\n# margin\n    return 1\n# stays\n", &["f"]),
        "def f():\n    'd'\n    raise NotImplementedError\n# stays\n"
    );
}

#[test]
fn text_of_strings_and_brackets_at_the_left_margin_does_not_end_a_function_body() {
    assert_eq!(
        mask("def f():\n    'd'\n    x = '''\ndef g(): pass\n'''\n    y = (\n1,\n)\n    return x, '#'\nz\n", &["f"]),
        "def f():\n    'd'\n    raise NotImplementedError\nz\n"
    );
}

#[test]
fn masking_adds_no_line_break_at_the_end_of_a_file_that_has_none() {
    assert_eq!(mask("def f():\n    'd'\n    return 1", &["f"]), "def f():\n    'd'\n    raise NotImplementedError");
    assert_eq!(mask("def f(): 'd'", &["f"]), "def f():\n    'd'\n    raise NotImplementedError");
    assert_eq!(mask("x\r\ndef f(): 'd'", &["f"]), "x\r\ndef f():\r\n    'd'\r\n    raise NotImplementedError");
}

#[test]
fn every_line_ending_is_kept() {
    let source = "x = 1\ndef f(a):\n    # hint\n    'd'\n    return a\n# c\ndef g(): pass\n";
    let expected = "x = 1\ndef f(a):\n    'd'\n    raise NotImplementedError\n# c\ndef g(): pass\n";
    for ending in ["\n", "\r\n", "\r"] {
        assert_eq!(mask(&source.replace('\n', ending), &["f"]), expected.replace('\n', ending), "{ending:?}");
    }
}

#[test]
fn tabs_are_kept() {
    assert_eq!(
        mask("class A:\n\tdef f(self):\n\t\tif x:\n\t\t\ty\n\t\treturn 1\n", &["A.f"]),
        "class A:\n\tdef f(self):\n\t\t\"\"\"Does it.\"\"\"\n\t\traise NotImplementedError\n"
    );
}

#[test]
fn form_feeds_do_not_disturb_the_indentation() {
    assert_eq!(
        mask("x\n\x0c\ndef f():\n\x0c    'd'\n    return 1\n\x0cdef g(): pass\n", &["f"]),
        "x\n\x0c\ndef f():\n    'd'\n    raise NotImplementedError\n\x0cdef g(): pass\n"
    );
}

#[test]
fn latin_1_sources_keep_their_bytes_and_take_descriptions_in_latin_1() {
    let source = b"# coding: latin-1\ndef \xe9t\xe9(a):\n    '\xe0'\n    return a\ndef g(a):\n    return '\xff'\n";
    let module = Module::parse("m.py", source.to_vec()).unwrap();
    let target =
        |name, description| MaskTarget { function: module.find(name).unwrap(), description: Some(description) };
    let masked = module.mask_checked(&[target("été", "unused"), target("g", "été → hiver")]).unwrap();
    assert_eq!(
        masked,
        b"# coding: latin-1\ndef \xe9t\xe9(a):\n    '\xe0'\n    raise NotImplementedError\n\
          def g(a):\n    \"\"\"\xe9t\xe9 \\u2192 hiver\"\"\"\n    raise NotImplementedError\n"
    );
}

#[test]
fn a_byte_order_mark_and_names_beyond_ascii_are_kept() {
    assert_eq!(
        mask("\u{feff}def größe(λ):\n    'ü'\n    return λ\n", &["größe"]),
        "\u{feff}def größe(λ):\n    'ü'\n    raise NotImplementedError\n"
    );
}

#[test]
fn methods_nested_functions_and_async_ones_are_masked() {
    let source = "class A:\n    async def f(self):\n        'd'\n        await x\n    class B:\n        def g(self):\n            \
                  'd'\n            def h():\n                'd'\n                return 1\n            return h\n";
    assert_eq!(
        mask(source, &["A.f", "A.B.g.h"]),
        "class A:\n    async def f(self):\n        'd'\n        raise NotImplementedError\n    class B:\n        \
         def g(self):\n            'd'\n            def h():\n                'd'\n                \
         raise NotImplementedError\n            return h\n"
    );
    assert!(
        mask(source, &["A.B.g"])
            .ends_with("    def g(self):\n            'd'\n            raise NotImplementedError\n")
    );
}

#[test]
fn functions_defined_under_if_try_and_with_are_masked() {
    let source = "try:\n  import a\n  def f(): return 1\nexcept E:\n  def f():\n    return 2\n  # e\nelse:\n  with x:\n    def g():\n      return 3\n";
    assert_eq!(
        mask(source, &["f#2", "g"]),
        "try:\n  import a\n  def f(): return 1\nexcept E:\n  def f():\n    \"\"\"Does it.\"\"\"\n    \
         raise NotImplementedError\n  # e\nelse:\n  with x:\n    def g():\n      \"\"\"Does it.\"\"\"\n      \
         raise NotImplementedError\n"
    );
}

#[test]
fn properties_overloads_and_duplicates_are_told_apart_by_number() {
    let source = "class A:\n    @property\n    def x(self): return 1\n    @x.setter\n    def x(self, v): self.y = v\n    \
                  @overload\n    def g(self, a: int) -> int: ...\n    def g(self, a): return a\n";
    let masked = mask(source, &["A.x#2", "A.g#2"]);
    assert_eq!(
        masked,
        "class A:\n    @property\n    def x(self): return 1\n    @x.setter\n    def x(self, v):\n        \
         \"\"\"Does it.\"\"\"\n        raise NotImplementedError\n    @overload\n    def g(self, a: int) -> int: ...\n    \
         def g(self, a):\n        \"\"\"Does it.\"\"\"\n        raise NotImplementedError\n"
    );
}

#[test]
fn a_masked_generator_raises_when_called() {
    let source = "def f():\n    'd'\n    for x in y:\n        yield x\n";
    assert!(Module::parse("m.py", source.into()).unwrap().functions()[0].is_generator);
    assert_eq!(mask(source, &["f"]), "def f():\n    'd'\n    raise NotImplementedError\n");
}

#[test]
fn functions_with_newer_python_syntax_are_masked() {
    let source = "def f[T: int](x: T) -> list[T]:\n    match x:\n        case {'a': [*_, y]} if y:\n            return y\n    \
                  type Z = int\n    while (z := g()):\n        pass\n    return f'{x!r:>{w}} {\"a\"}'\n";
    assert_eq!(
        mask(source, &["f"]),
        "def f[T: int](x: T) -> list[T]:\n    \"\"\"Does it.\"\"\"\n    raise NotImplementedError\n"
    );
}

#[test]
fn continuations_and_semicolons_at_the_end_of_a_body_are_removed() {
    for end in ["return 1;\n", "return 1 ; # c\n", "return \\\n  1\n", "return 1 \\\n\n", "x; return 1\n"] {
        assert_eq!(
            mask(&format!("def f():\n    'd'; y\n    {end}z\n"), &["f"]),
            "def f():\n    'd'\n    raise NotImplementedError\nz\n",
            "{end:?}"
        );
    }
}

#[test]
fn the_order_in_which_functions_are_named_does_not_change_the_masked_source() {
    let source = "def f():\n    return 1\ndef g():\n    return 2\ndef h():\n    return 3\n";
    assert_eq!(mask(source, &["h", "f"]), mask(source, &["f", "h"]));
    assert!(mask(source, &["h", "f"]).contains("def g():\n    return 2\n"));
}

#[test]
fn a_file_in_which_nothing_is_masked_keeps_its_bytes_unchanged() {
    assert_eq!(mask("def f():\r  return 1 # c", &[]), "def f():\r  return 1 # c");
}

#[test]
fn a_function_and_one_nested_in_it_cannot_be_masked_together() {
    let module =
        Module::parse("m.py", b"def f():\n    class A:\n        def g(self): pass\n\ndef h(): pass\n".to_vec());
    let module = module.unwrap();
    let target = |function| MaskTarget { function, description: None };
    let error = module.mask(&[target(1), target(0)]).unwrap_err();
    assert_eq!(error.message, "`f.A.g` is nested in `f`: the two cannot be masked together");
    assert!(error.hint.is_some());
    assert!(module.mask(&[target(2), target(2)]).is_err());
    assert!(module.mask(&[target(9)]).is_err());
    assert!(module.overlaps(0, 1) && module.overlaps(1, 0) && module.overlaps(1, 1) && !module.overlaps(1, 2));
}

// The tests below cover faults of the published reference implementation, one test per fault.

#[test]
fn a_function_is_found_by_name_after_lines_were_added_above() {
    let function = "def f():\n    'd'\n    return 1\n";
    let masked = mask(&format!("{}{function}", "x = 1\n".repeat(20)), &["f"]);
    assert_eq!(masked, format!("{}def f():\n    'd'\n    raise NotImplementedError\n", "x = 1\n".repeat(20)));
}

#[test]
fn the_line_directly_after_a_masked_body_is_kept() {
    let masked = mask("def f():\n    return 1\nimportant = 1\n", &["f"]);
    assert!(masked.ends_with("    raise NotImplementedError\nimportant = 1\n"));
}

#[test]
fn masking_init_keeps_the_class_line_and_the_def() {
    assert_eq!(
        mask("class A(B):\n    'doc'\n    def __init__(self, x):\n        self.x = x\n", &["A.__init__"]),
        "class A(B):\n    'doc'\n    def __init__(self, x):\n        \"\"\"Does it.\"\"\"\n        raise NotImplementedError\n"
    );
}

#[test]
fn each_of_six_methods_of_the_same_name_is_found_by_its_class() {
    let class = |number: usize| format!("class L{number}:\n    def __call__(self, x):\n        return {number}\n");
    let source = [0, 1, 2, 3, 4, 5].map(class).concat();
    let module = Module::parse("losses.py", source.clone().into()).unwrap();
    let error = module.find("__call__").unwrap_err();
    assert!(error.hint.unwrap().contains("`L0.__call__`"));
    let masked = mask(&source, &["L4.__call__"]);
    assert!(!masked.contains("return 4"));
    assert_eq!(masked.matches("return").count(), 5);
}
