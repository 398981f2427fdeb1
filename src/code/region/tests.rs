//! Tests of masking and finding regions. They compare the exact bytes of the masked files.

use super::*;
use crate::code::{MaskTarget, MaskedPart};

fn parsed(source: &str) -> Module {
    Module::parse("m.py", source.as_bytes().to_vec()).unwrap()
}

fn statements<'a>(first: &'a str, last: Option<&'a str>) -> Bounds<'a> {
    Bounds::Statements { first, last, number: None }
}

fn found(source: &str, bounds: Bounds<'_>) -> Result<Region> {
    let module = parsed(source);
    module.region(Some(module.find("f").unwrap()), bounds)
}

/// Returns the file with this region of the function `f` masked. Asserts that the masked file is valid, and that the
/// replacement is at the reported range.
fn mask(source: &str, bounds: Bounds<'_>) -> String {
    let module = parsed(source);
    let region = module.region(Some(module.find("f").unwrap()), bounds).unwrap();
    let masked = module.cut_checked(&[MaskedPart::Region(&region)]).unwrap();
    assert_eq!(&masked.bytes[masked.stand_ins[0].clone()], module.stand_in(&region));
    String::from_utf8(masked.bytes).unwrap()
}

fn fault(source: &str, bounds: Bounds<'_>) -> String {
    let error = found(source, bounds).unwrap_err();
    assert!(error.hint.is_some(), "{error}");
    error.to_string()
}

const LOOP: &str = "def f(xs):\n    \"\"\"Doc.\"\"\"\n    total = 0\n    for x in xs:\n        # square\n        y = x * x  # why\n\n        total += y\n        # done\n    # behind\n    return total\n\n# far\n";

#[test]
fn statements_of_a_block_become_one_raise_at_their_indentation() {
    assert_eq!(
        mask(LOOP, statements("y = x * x", Some("total += y"))),
        "def f(xs):\n    \"\"\"Doc.\"\"\"\n    total = 0\n    for x in xs:\n        raise NotImplementedError\n    # behind\n    return total\n\n# far\n"
    );
    assert_eq!(
        mask(LOOP, statements("total += y", None)),
        "def f(xs):\n    \"\"\"Doc.\"\"\"\n    total = 0\n    for x in xs:\n        # square\n        y = x * x  # why\n\n        raise NotImplementedError\n    # behind\n    return total\n\n# far\n"
    );
    assert_eq!(
        mask(LOOP, statements("for  x in xs:", None)),
        "def f(xs):\n    \"\"\"Doc.\"\"\"\n    total = 0\n    raise NotImplementedError\n    # behind\n    return total\n\n# far\n"
    );
    assert_eq!(
        mask(LOOP, statements("total = 0", Some("return"))),
        "def f(xs):\n    \"\"\"Doc.\"\"\"\n    raise NotImplementedError\n\n# far\n"
    );
}

#[test]
fn comments_above_a_region_are_removed_if_they_have_its_indentation_and_are_not_in_strings() {
    let source = "def f():\n    t = '''\n    # text'''\n    # hint\n    x = 1\n  # margin\n    y = 2\n    z = '''\n    # text'''\n    w = 3\n";
    assert_eq!(
        mask(source, statements("x = 1", None)),
        "def f():\n    t = '''\n    # text'''\n    raise NotImplementedError\n  # margin\n    y = 2\n    z = '''\n    # text'''\n    w = 3\n"
    );
    assert_eq!(mask(source, statements("w = 3", None)), source.replace("    w = 3", "    raise NotImplementedError"));
    assert_eq!(mask(source, statements("y", None)), source.replace("    y = 2", "    raise NotImplementedError"));
}

#[test]
fn tabs_line_endings_and_a_missing_last_line_ending_are_kept() {
    for ending in ["\n", "\r\n", "\r"] {
        let source = "\u{feff}def f(x):\n\tif x:\n\t\ta = (1,\n2)  # c\n\t\tb = 3\n\treturn 1".replace('\n', ending);
        let expected = "\u{feff}def f(x):\n\tif x:\n\t\traise NotImplementedError\n\treturn 1".replace('\n', ending);
        assert_eq!(mask(&source, statements("a = (1, 2)", Some("b"))), expected, "{ending:?}");
        let expected = "\u{feff}def f(x):\n\tif x:\n\t\ta = (1,\n2)  # c\n\t\tb = 3\n\traise NotImplementedError";
        assert_eq!(mask(&source, statements("return", None)), expected.replace('\n', ending), "{ending:?}");
    }
}

#[test]
fn a_repeated_statement_is_chosen_by_number_and_an_exact_match_is_preferred() {
    let source = "def f(x):\n    x = 1\n    if x:\n        x = 1\n    x = 10\n    return x\n";
    assert!(fault(source, statements("x = 1", None)).contains("2 statements of `f` begin with `x = 1`"));
    let second = Bounds::Statements { first: "x = 1", last: None, number: Some(2) };
    assert_eq!(mask(source, second), source.replace("        x = 1\n", "        raise NotImplementedError\n"));
    assert_eq!(mask(source, statements("x = 10", None)), source.replace("    x = 10", "    raise NotImplementedError"));
}

#[test]
fn partial_statements_and_several_blocks_are_refused_as_regions() {
    assert!(fault(LOOP, statements("total = 0", Some("total += y"))).contains("follows `total = 0` in the same block"));
    assert!(fault(LOOP, statements("nothing", None)).contains("no statement of `f` begins with `nothing`"));
    assert!(fault(LOOP, statements("\"\"\"Doc", Some("total = 0"))).contains("cannot hold the docstring"));
    for (source, first) in [
        ("def f():\n    a = 1; b = 2\n    return b\n", "a = 1"),
        ("def f():\n    a = 1; b = 2\n    return b\n", "b = 2"),
        ("def f(): return 1\n", "return"),
        ("def f():\n    if x: y = 1\n    return y\n", "y = 1"),
        ("def f():\n    if x: \\\n        y = 1\n    return y\n", "y = 1"),
    ] {
        assert!(fault(source, statements(first, None)).contains("share a line"), "{source}");
    }
    let shared = "def f():\n    a = 1; b = 2;  # c\n    return b\n";
    assert_eq!(mask(shared, statements("a = 1", Some("b"))), "def f():\n    raise NotImplementedError\n    return b\n");
}

#[test]
fn statements_of_a_nested_function_do_not_belong_to_the_outer_function() {
    let source = "def f():\n    def g():\n        x = 1\n        return x\n    class C:\n        y = 1\n    return g\n";
    assert!(fault(source, statements("x = 1", None)).contains("no statement of `f`"));
    assert!(fault(source, statements("y = 1", None)).contains("no statement of `f`"));
    assert_eq!(
        mask(source, statements("def g", Some("class C"))),
        "def f():\n    raise NotImplementedError\n    return g\n"
    );
}

#[test]
fn regions_whose_removal_breaks_compilation_are_refused() {
    let source = "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n    m = 1\n    return g\n";
    assert!(fault(source, statements("n = 0", None)).contains("use `n`"));
    assert_eq!(mask(source, statements("m = 1", None)), source.replace("m = 1", "raise NotImplementedError"));
    assert!(mask(source, statements("n = 0", Some("def g"))).contains("    raise NotImplementedError\n    m = 1\n"));
    let file = parsed("'doc'\nfrom __future__ import annotations\nx = 1\ny = 2\n");
    assert!(file.region(None, statements("from __future__", None)).is_err());
    let region = file.region(None, statements("x", Some("y"))).unwrap();
    let masked = file.cut_checked(&[MaskedPart::Region(&region)]).unwrap();
    assert_eq!(masked.bytes, b"'doc'\nfrom __future__ import annotations\nraise NotImplementedError\n");
}

const TAGGED: &str = "class D:\n    def f(self, x):\n\n        # <paper2code name=\"forward\">\n        # <paper2code name=\"tanh\">\n        x = tanh(x)\n        # </paper2code name=\"tanh\">\n        # <paper2code name=\"split\">\n\n        if last:\n            # <paper2code name=\"first branch\">\n            x = x * 2\n            # </paper2code name=\"first branch\">\n        else:\n            # region second\n            # hint\n            x = x * 3\n            # endregion\n        # </paper2code name=\"split\">\n        # </paper2code name=\"forward\">\n        return x\n";

#[test]
fn comment_tags_mark_regions_nested_in_each_other() {
    let module = parsed(TAGGED);
    let all = tagged(&module).unwrap();
    let lines: Vec<(&str, usize)> =
        all.iter().map(|it| (it.name.as_str(), module.code_lines(&it.region.as_ref().unwrap().range))).collect();
    assert_eq!(lines, [("forward", 5), ("tanh", 1), ("split", 4), ("first branch", 1), ("second", 1)]);
    let mask = |name: &str| {
        let region = module.region(None, Bounds::Tag { name, number: None }).unwrap();
        assert_eq!(region.function, Some(0));
        String::from_utf8(module.cut_checked(&[MaskedPart::Region(&region)]).unwrap().bytes).unwrap()
    };
    let raise = "raise NotImplementedError\n";
    let (before, rest) = TAGGED.split_at(TAGGED.find("        # <paper2code name=\"tanh\">\n").unwrap());
    let behind = &rest[rest.find("        # </paper2code name=\"forward\">").unwrap()..];
    assert_eq!(mask("forward"), format!("{before}        {raise}{behind}"));
    assert_eq!(
        mask("second"),
        TAGGED.replace("            # hint\n            x = x * 3\n", &format!("            {raise}"))
    );
    let cut = TAGGED.find("        if last").unwrap()..TAGGED.find("        # </paper2code name=\"split\">").unwrap();
    assert_eq!(mask("split"), format!("{}        {raise}{}", &TAGGED[..cut.start], &TAGGED[cut.end..]));
}

#[test]
fn tags_that_do_not_enclose_neighbouring_statements_of_one_block_are_refused() {
    let at = |source: &str| {
        let module = parsed(source);
        module.region(None, Bounds::Tag { name: "a", number: None }).unwrap_err().to_string()
    };
    let open = "# <paper2code name=\"a\">\n";
    let close = "# </paper2code name=\"a\">\n";
    assert!(
        at(&format!("if x:\n    {open}    y\nelse:\n    z\n    {close}")).contains("not whole statements of one block")
    );
    assert!(
        at(&format!("if x:\n    y\n    {open}elif w:\n    z\n    {close}"))
            .contains("not whole statements of one block")
    );
    assert!(at(&format!("x\n{open}{close}y\n")).contains("no statement is in the region `a`"));
    assert!(at(&format!("x\n{open}y\n")).contains("is never closed"));
    assert!(at(&format!("x\n{close}y\n")).contains("closes a region that none opens"));
    assert!(at(&format!("{open}x\n# </paper2code name=\"b\">\n")).contains("`b` is closed where `a` is open"));
    assert!(at(&format!("{open}x\n{close}{open}y\n{close}")).contains("2 regions are marked `a`"));
    assert!(at("x = 1\n").contains("no comments mark a region `a`"));
}

#[test]
fn prose_that_looks_like_an_editor_s_comment_marks_nothing_and_is_masked_with_its_statement() {
    let source = "# region proposals are ranked first\ndef f():\n    # region total\n    x = 1\n    # endregion\n    # endregion of the image\n    y = 2\n    # region of interest: the third\n    z = 3\n    return z\n";
    let all = tagged(&parsed(source)).unwrap();
    assert_eq!(all.iter().map(|it| (it.word.as_str(), it.name.as_str())).collect::<Vec<_>>(), [("region", "total")]);
    let raise = "    raise NotImplementedError";
    assert_eq!(mask(source, Bounds::Tag { name: "total", number: None }), source.replace("    x = 1", raise));
    assert_eq!(mask(source, statements("x = 1", None)), source.replace("    x = 1", raise));
    assert_eq!(
        mask(source, statements("y = 2", None)),
        source.replace("    # endregion of the image\n    y = 2", raise)
    );
    assert_eq!(
        mask(source, statements("z = 3", None)),
        source.replace("    # region of interest: the third\n    z = 3", raise)
    );
}

#[test]
fn a_region_cannot_be_masked_together_with_its_function_but_neighbouring_regions_can() {
    let module =
        parsed("def f():\n    a = 1\n    b = 2\n    if b:\n        c = 3\n    return a\n\ndef g():\n    return 1\n");
    let region = |first: &str| module.region(Some(0), statements(first, None)).unwrap();
    let (a, b, c, outer) = (region("a"), region("b"), region("c"), region("if b"));
    let target = |function| MaskedPart::Function(MaskTarget { function, description: None });
    for cuts in [
        [MaskedPart::Region(&c), MaskedPart::Region(&outer)],
        [target(0), MaskedPart::Region(&c)],
        [MaskedPart::Region(&a), MaskedPart::Region(&a)],
    ] {
        assert!(module.cut(&cuts).unwrap_err().hint.is_some());
    }
    let masked = module
        .cut_checked(&[target(1), MaskedPart::Region(&c), MaskedPart::Region(&a), MaskedPart::Region(&b)])
        .unwrap();
    assert_eq!(
        String::from_utf8(masked.bytes.clone()).unwrap(),
        "def f():\n    raise NotImplementedError\n    raise NotImplementedError\n    if b:\n        raise NotImplementedError\n    return a\n\ndef g():\n    raise NotImplementedError\n"
    );
    let texts: Vec<&[u8]> = masked.stand_ins.iter().map(|range| &masked.bytes[range.clone()]).collect();
    assert_eq!(texts[1], b"        raise NotImplementedError");
    assert_eq!(texts[2], b"    raise NotImplementedError");
    assert!(masked.stand_ins[2].start < masked.stand_ins[3].start);
}

#[test]
fn proposed_regions_are_nested_near_the_requested_size_and_identified_by_their_statements() {
    let source = "def f(xs):\n    \"\"\"Doc.\"\"\"\n    a = 1\n    b = 2\n    for x in xs:\n        if x:\n            a += x\n        else:\n            b += x\n        a = a * b\n    c = a\n    return c\n";
    let module = parsed(source);
    let proposals = module.propose(0, &[1.0 / 3.0, 0.5]).unwrap();
    let shown: Vec<(f64, usize, &str, Option<&str>)> =
        proposals.iter().map(|it| (it.share, it.lines, it.first.as_str(), it.last.as_deref())).collect();
    assert_eq!(shown, [(0.5, 5, "if x:", Some("a = a * b")), (1.0 / 3.0, 4, "if x:", None)]);
    for proposal in &proposals {
        let bounds =
            Bounds::Statements { first: &proposal.first, last: proposal.last.as_deref(), number: proposal.number };
        assert_eq!(module.region(Some(0), bounds).unwrap(), proposal.region);
    }
}
