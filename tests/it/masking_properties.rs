//! Masking of generated sources: for any mixture of tabs, line endings, letters, decorators, nesting, one-line bodies
//! and comments, all bytes outside the masked bodies are kept, and the result parses.

use autoexperiment::code::{MaskTarget, Module};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A statement of a generated module.
#[derive(Debug, Clone)]
enum Statement {
    Simple(&'static str),
    Comment(&'static str),
    Blank,
    If(Vec<Statement>),
    Class(&'static str, Vec<Statement>),
    Function(Box<Function>),
}

#[derive(Debug, Clone)]
struct Function {
    name: &'static str,
    decorators: Vec<&'static str>,
    signature: &'static str,
    asynchronous: bool,
    /// Comments between the colon and the first statement.
    between: Vec<&'static str>,
    docstring: Option<&'static str>,
    body: Body,
    /// Comments after the last statement, indented like the body.
    trailing: Vec<&'static str>,
}

#[derive(Debug, Clone)]
enum Body {
    OneLine(&'static str),
    Block(Vec<Statement>),
}

const NAMES: [&str; 5] = ["f", "größe", "λ_1", "__init__", "数"];
const SIMPLE: [&str; 11] = [
    "x = g(1)",
    "return [i for i in h(x)]",
    "yield",
    "s = 'é # no comment'; t = \"\"\"def f(): pass\"\"\"",
    "call(a.b(1), *c)  # trailing ü",
    "x = (1,\n2)",
    "x = 1 + \\\n  2",
    "t = '''\ndef f():\n  pass\n'''",
    "k = lambda a=1: (yield)",
    "print(f'{x!r:>{w}} {{}}')",
    "raise NotImplementedError",
];
const COMMENTS: [&str; 3] = ["# hint", "#", "# def f(): ü"];
const DECORATORS: [&str; 3] = ["@a", "@a.b(1, lambda: 2)", "@c(\n  x,\n)"];
const SIGNATURES: [&str; 4] =
    ["(self)", "(\n  a: int = 1,  # é\n  *b, **c\n) -> 'x: y'", "(a, /, b={1: 2}[1], *, k=lambda z: z)", "()"];
const DOCSTRINGS: [&str; 5] = ["'d'", "\"\"\"Söme\n  lines.\n\"\"\"", "r'\\d'", "('a'\n'b')", "'a' \"b\""];
const ONE_LINE: [&str; 4] = ["return 1", "x = 1; return x", "...", "pass  # hint"];

fn statements(depth: u32) -> BoxedStrategy<Vec<Statement>> {
    proptest::collection::vec(statement(depth), 0..4).boxed()
}

fn statement(depth: u32) -> BoxedStrategy<Statement> {
    let leaf = prop_oneof![
        3 => select(&SIMPLE[..]).prop_map(Statement::Simple),
        1 => select(&COMMENTS[..]).prop_map(Statement::Comment),
        1 => Just(Statement::Blank),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    prop_oneof![
        2 => leaf,
        1 => statements(depth - 1).prop_map(Statement::If),
        2 => (select(&NAMES[..]), statements(depth - 1)).prop_map(|(name, body)| Statement::Class(name, body)),
        4 => function(depth - 1).prop_map(|function| Statement::Function(Box::new(function))),
    ]
    .boxed()
}

fn function(depth: u32) -> impl Strategy<Value = Function> {
    let some = |from: &'static [&'static str]| proptest::collection::vec(select(from), 0..3);
    let body = prop_oneof![
        1 => select(&ONE_LINE[..]).prop_map(Body::OneLine),
        3 => statements(depth).prop_map(Body::Block),
    ];
    (
        (select(&NAMES[..]), some(&DECORATORS), select(&SIGNATURES[..]), any::<bool>()),
        (some(&COMMENTS), proptest::option::of(select(&DOCSTRINGS[..])), body, some(&COMMENTS)),
    )
        .prop_map(|((name, decorators, signature, asynchronous), (between, docstring, body, trailing))| Function {
            name,
            decorators,
            signature,
            asynchronous,
            between,
            docstring,
            body,
            trailing,
        })
}

/// Writer of a generated module, and of the text that is expected after some of its functions are masked.
struct Writer<'mask> {
    unit: &'static str,
    source: String,
    /// The masked text; nothing is added to it inside a masked body.
    expected: String,
    /// Decides for each function, in source order, whether it is masked.
    mask: &'mask mut dyn FnMut(usize) -> bool,
    count: usize,
    masked: Vec<usize>,
    inside: bool,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        self.source.push_str(text);
        if !self.inside {
            self.expected.push_str(text);
        }
    }

    fn line(&mut self, indent: &str, text: &str) {
        self.push(&format!("{indent}{text}\n"));
    }

    fn block(&mut self, indent: &str, statements: &[Statement]) {
        for statement in statements {
            self.statement(indent, statement);
        }
        // End every block with a statement, so that no block is empty or ends in a comment.
        self.line(indent, "end(1)");
    }

    fn statement(&mut self, indent: &str, statement: &Statement) {
        let deeper = format!("{indent}{}", self.unit);
        match statement {
            Statement::Simple(text) | Statement::Comment(text) => self.line(indent, text),
            Statement::Blank => self.line("", ""),
            Statement::If(body) => {
                self.line(indent, "if x:  # why");
                self.block(&deeper, body);
            }
            Statement::Class(name, body) => {
                self.line(indent, &format!("class {name}(B):"));
                self.block(&deeper, body);
            }
            Statement::Function(function) => self.function(indent, &deeper, function),
        }
    }

    fn function(&mut self, indent: &str, deeper: &str, function: &Function) {
        for decorator in &function.decorators {
            self.line(indent, decorator);
        }
        let keyword = if function.asynchronous { "async def" } else { "def" };
        self.push(&format!("{indent}{keyword} {}{}:", function.name, function.signature));
        let number = self.count;
        self.count += 1;
        let masks = !self.inside && (self.mask)(number);
        if masks {
            self.inside = true;
            self.masked.push(number);
            self.expected.push('\n');
            let docstring = function.docstring.map_or("\"\"\"Does it.\"\"\"".to_owned(), str::to_owned);
            let step = if indent.ends_with('\t') { "\t" } else { "    " };
            let inner = match function.body {
                Body::OneLine(_) => format!("{indent}{step}"),
                Body::Block(_) => deeper.to_owned(),
            };
            let lines = format!("{inner}{docstring}\n{inner}raise NotImplementedError\n");
            self.expected.push_str(&lines);
        }
        match &function.body {
            Body::OneLine(text) => {
                let docstring = function.docstring.map(|docstring| format!("{docstring}; ")).unwrap_or_default();
                self.line(" ", &format!("{docstring}{text}"));
            }
            Body::Block(statements) => {
                self.push("\n");
                for comment in &function.between {
                    self.line(deeper, comment);
                }
                if let Some(docstring) = function.docstring {
                    self.line(deeper, docstring);
                }
                self.block(deeper, statements);
                for comment in &function.trailing {
                    self.line(deeper, comment);
                }
            }
        }
        if masks {
            self.inside = false;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_sources_are_masked_as_their_generator_expects(
        statements in statements(3),
        unit in select(&["    ", "\t", "  ", " \t"][..]),
        ending in select(&["\n", "\r\n", "\r"][..]),
        choices in proptest::collection::vec(any::<bool>(), 1..20),
        marked in any::<bool>(),
        ended in any::<bool>(),
    ) {
        let mut mask = |number: usize| choices[number % choices.len()];
        let mut writer = Writer {
            unit, source: String::new(), expected: String::new(), mask: &mut mask, count: 0, masked: Vec::new(), inside: false,
        };
        writer.block("", &statements);
        let (count, masked) = (writer.count, writer.masked);
        let finish = |text: String| {
            let text = if ended { &text[..] } else { text.trim_end() };
            format!("{}{}", if marked { "\u{feff}" } else { "" }, text.replace('\n', ending)).into_bytes()
        };
        let (source, expected) = (finish(writer.source), finish(writer.expected));
        let module = Module::parse("m.py", source.clone()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(module.functions().len(), count);
        let targets: Vec<MaskTarget> =
            masked.iter().rev().map(|&function| MaskTarget { function, description: Some("Does it.") }).collect();
        let got = module.mask_checked(&targets).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(String::from_utf8(got).unwrap(), String::from_utf8(expected).unwrap());
    }

    #[test]
    fn any_description_becomes_a_docstring_that_parses(description in any::<String>(), latin in any::<bool>(), crlf in any::<bool>()) {
        let head = if latin { "# coding: latin-1\n" } else { "" };
        let source = format!("{head}class A:\n\tdef f(self): return 1\nx = 1\n");
        let source = if crlf { source.replace('\n', "\r\n") } else { source };
        let module = Module::parse("m.py", source.into_bytes()).unwrap();
        let masked = module.mask_checked(&[MaskTarget { function: 0, description: Some(&description) }]);
        let masked = masked.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let again = Module::parse("m.py", masked).unwrap();
        prop_assert_eq!(again.docstring(0).is_some(), !description.trim().is_empty());
    }

    #[test]
    fn masking_random_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), names in any::<Index>()) {
        if let Ok(module) = Module::parse("m.py", bytes) {
            let count = module.functions().len();
            if count > 0 {
                let _ = module.mask_checked(&[MaskTarget { function: names.index(count), description: None }]);
            }
        }
    }

    #[test]
    fn masking_text_that_resembles_python_never_panics(
        pieces in proptest::collection::vec(select(&[
            "def f", "(", ")", ":", "\n", " ", "\t", "    ", "'", "\"\"\"", "#", "\\", "class A", "@a", ";", "é", "\r",
            "\u{c}", "return 1", "yield", "lambda", "async ", "pass", "x", ",", "[", "]", "f'{", "}", "\u{feff}",
        ][..]), 0..40),
        pick in any::<Index>(),
    ) {
        if let Ok(module) = Module::parse("m.py", pieces.concat().into_bytes()) {
            let count = module.functions().len();
            if count > 0 {
                let function = pick.index(count);
                let masked = module.mask(&[MaskTarget { function, description: None }]).unwrap();
                prop_assert!(masked.starts_with(&module.source()[..module.functions()[function].header.end]));
            }
        }
    }
}
