//! Tests of the parser: which functions and calls it finds, and which files it refuses.

use super::*;

fn parse(source: &str) -> Module {
    Module::parse("pkg/m.py", source.into()).unwrap()
}

fn labels(source: &str) -> Vec<String> {
    parse(source).functions().iter().map(Function::label).collect()
}

fn refused(source: &str) -> (String, usize) {
    let error = Module::parse("pkg/m.py", source.into()).unwrap_err();
    assert_eq!(error.kind, crate::error::FailureKind::Suite);
    assert!(error.hint.is_some());
    let (path, line) = error.place.unwrap();
    assert_eq!(path, Path::new("pkg/m.py"));
    (error.message, line.unwrap())
}

#[test]
fn the_qualified_name_of_a_nested_function_is_pythons_qualname_without_the_locals_marker() {
    let source =
        "def f():\n  def g():\n    class A:\n      def h(self): pass\nclass B:\n  class C:\n    async def f(s): pass\n";
    assert_eq!(labels(source), ["f", "f.g", "f.g.A.h", "B.C.f"]);
}

#[test]
fn functions_of_the_same_name_are_numbered_from_the_first() {
    let source = "def f(): pass\ndef g(): pass\nif x:\n  def f():\n    def h(): pass\n    def h(): pass\n";
    assert_eq!(labels(source), ["f#1", "g", "f#2", "f.h#1", "f.h#2"]);
}

#[test]
fn a_plain_name_of_several_functions_is_ambiguous() {
    let module = parse("def f(): pass\ndef f(): pass\n");
    let error = module.find("f").unwrap_err();
    assert_eq!(error.message, "`f` matches 2 functions");
    assert_eq!(error.hint.unwrap(), "use `f#1` (line 1) or `f#2` (line 2)");
    assert_eq!((module.find("f#1").unwrap(), module.find("f#2").unwrap()), (0, 1));
    assert_eq!(module.find("f#3").unwrap_err().message, "there is no `f#3`, because the file has only 2 functions `f`");
}

#[test]
fn a_selector_may_number_a_function_with_1_although_its_name_is_unique() {
    let module = parse("def f(): pass\n");
    assert_eq!(module.find("f#1").unwrap(), 0);
    assert_eq!(
        module.find("f#2").unwrap_err().message,
        "there is no `f#2`, because the file has only one function `f`"
    );
}

#[test]
fn an_unknown_name_is_reported_with_similar_names() {
    let module = parse("class A:\n  def fit(self): pass\ndef predict(): pass\n");
    assert_eq!(module.find("fit").unwrap_err().hint.unwrap(), "did you mean `A.fit`?");
    assert_eq!(module.find("predcit").unwrap_err().hint.unwrap(), "did you mean `predict`?");
    assert!(module.find("zzz").unwrap_err().hint.unwrap().contains("autoexperiment index pkg/m.py"));
}

#[test]
fn decorators_header_docstring_body_calls_and_class_of_a_function_are_read() {
    let source = "class A:\n    @property\n    # c\n    @b(1)\n    async def f(self, x=g(1)):  # c\n        'd'\n        \
                  return h(x).i(k.l(2), (yield))\n        # t\n";
    let module = parse(source);
    let function = &module.functions()[0];
    let text = |range: &std::ops::Range<usize>| &source[range.clone()];
    assert_eq!(module.decorators(0), ["@property", "@b(1)"]);
    assert_eq!(module.header(0), "async def f(self, x=g(1)):");
    assert_eq!(module.docstring(0).unwrap(), "'d'");
    assert_eq!(module.calls(0), [".i", "h", "k.l"]);
    assert!(text(&function.whole).starts_with("@property") && text(&function.whole).ends_with("# t"));
    assert!(text(&function.body).starts_with("  # c\n") && text(&function.body).ends_with("# t"));
    assert_eq!((function.first_line, function.last_line, function.lines()), (5, 7, 3));
    assert!(function.is_async && function.is_generator);
    assert_eq!((function.class.as_deref(), function.parent), (Some("A"), None));
    assert_eq!(module.selector(0).to_string(), "pkg/m.py::A.f");
}

#[test]
fn a_function_is_a_generator_only_if_its_own_body_yields() {
    let source = "def a(x=lambda: (yield)):\n  yield\ndef b():\n  def c(): yield 1\n  return lambda: (yield)\nasync def d():\n  x = yield\n";
    let generators: Vec<bool> = parse(source).functions().iter().map(|it| it.is_generator).collect();
    assert_eq!(generators, [true, false, true, true]);
}

#[test]
fn a_method_of_a_local_class_has_the_outer_function_as_parent() {
    let parents: Vec<_> = parse("def f():\n  class A:\n    def g(s): pass\ndef h(): pass\n")
        .functions()
        .iter()
        .map(|it| it.parent)
        .collect();
    assert_eq!(parents, [None, Some(0), None]);
}

#[test]
fn syntax_errors_are_refused_with_their_line() {
    assert_eq!(refused("x = 1\ndef f(:\n  pass\n").1, 2);
    assert_eq!(refused("x = 1\n\ny = (1\n").1, 3);
    refused("def f():\n");
    refused("def f():\n  return '\n");
}

#[test]
fn misaligned_lines_are_refused_though_the_grammar_accepts_them() {
    let message = "syntax error: this line is not aligned with its block";
    assert_eq!(refused("def f():\n        a\n    b\n"), (message.into(), 3));
    assert_eq!(refused("def f():\n    \\\n    'doc'\n    return 1\n").0, message);
    parse("\u{feff}x; y\nif a: b; c\nz; \\\n  y\ndef f():\n\ta\n        b\n");
}

#[test]
fn an_empty_file_has_no_functions() {
    for source in ["", "\n", "# c", "\u{feff}"] {
        assert_eq!(labels(source).len(), 0);
    }
}

#[test]
fn a_line_inside_brackets_may_be_indented_less_than_its_block() {
    let source = "class A:\n    def f(self):\n        (bar.\nbaz)\n        (a +  # why\n  b(\n))\n        return x(\n  1)\n\n    def g(self):\n        y = (p and\n q)\n";
    let module = parse(source);
    assert_eq!(
        module.functions().iter().map(|it| (it.label(), it.first_line, it.lines())).collect::<Vec<_>>(),
        [("A.f".to_owned(), 2, 8), ("A.g".to_owned(), 11, 3),]
    );
    assert_eq!(module.calls(0), ["b", "x"]);
    refused("def f():\n    x = 1\n  (a +\nb)\n");
    refused("def f():\n    (a.\nb\n");
}
