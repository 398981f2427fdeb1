//! Tests of splicing, with replies as models write them and with random replies.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const FILE: &str = "\"\"\"Means.\"\"\"\n\nimport math\n\n\n# Of a list.\n@cached\ndef mean(values, *, weights=None):\n    \"\"\"The mean.\"\"\"\n    raise NotImplementedError\n\n\nclass Spread:\n    def mean(self, x):\n        raise NotImplementedError\n\n    def other(self):\n        return 1\n";

fn file() -> Module {
    Module::parse("means.py", FILE.into()).unwrap()
}

fn into(name: &str, reply: &str) -> Result<SplicedFile, String> {
    let file = file();
    let spliced = file.splice(file.find(name).unwrap(), reply)?;
    assert_eq!(spliced.bytes, apply(FILE.as_bytes(), &spliced.edits));
    Ok(spliced)
}

fn text(name: &str, reply: &str) -> String {
    String::from_utf8(into(name, reply).unwrap().bytes).unwrap()
}

/// Returns the file with another body of the function `mean`.
fn with_body(body: &str) -> String {
    FILE.replacen("    raise NotImplementedError\n", body, 1)
}

const SUM: &str = "    return sum(values) / len(values)\n";

#[test]
fn a_function_is_found_in_a_reply_of_any_form() {
    let function = "def mean(values, *, weights=None):\n    return sum(values) / len(values)\n";
    let deep = function.replace("def", "        def").replace("    return", "            return");
    for reply in [
        function.to_owned(),
        format!("```python\n{function}```"),
        format!("Here it is:\n\n```python\n{function}```\n\nIt divides the sum."),
        format!("```\n{function}"),
        format!("Sure! Here is the code:\n{function}\nThis isn't hard, is it?"),
        format!("```python\n{deep}```"),
        "```python\n    return sum(values) / len(values)\n```".to_owned(),
        "return sum(values) / len(values)".to_owned(),
        "def mean(values, *, weights=None): return sum(values) / len(values)".to_owned(),
        format!("```python\n{FILE}```").replacen("    raise NotImplementedError", SUM.trim_end(), 1),
        format!("```py\n{function}```\nUsage:\n```py\nprint(mean([1, 2]))\n```"),
        format!("First try:\n```py\ndef mean(values, *, weights=None):\n    return 0\n```\nNo:\n```py\n{function}```"),
        format!("{function}\n```\nprint(1)\n```"),
        "It begins:\n```python\ndef mean(values, *, weights=None):\n```\nThe code:\n```python\n    return sum(values) / len(values)\n```".to_owned(),
        "```python\n@cached\ndef mean(values, *, weights=None):\n    \"\"\"The mean.\"\"\"\n```\n```python\nreturn sum(values) / len(values)\n```\nDone.".to_owned(),
        function.replace("mean(", "average("),
        "def mean(values: list[float], *, weights: list | None = None) -> float:\n  \"\"\"My words.\"\"\"\n  return sum(values) / len(values)".to_owned(),
        function.replace('\n', "\r\n"),
    ] {
        assert_eq!(text("mean", &reply), with_body(SUM), "{reply}");
    }
}

#[test]
fn a_method_is_accepted_inside_its_class_or_as_a_bare_function() {
    let wanted = FILE.replacen("        raise NotImplementedError", "        y = x\n        return y", 1);
    for reply in [
        "class Spread:\n    def mean(self, x):\n        y = x\n        return y\n",
        "def mean(self, x):\n    y = x\n    return y\n",
        "def Spread.mean(self, x):\n    y = x\n    return y\n",
        "    def mean(self, x):\n        y = x\n        return y\n",
        "def mean(x):\n  y = x\n  return y\n",
        "def mean(values):\n    return 0\n\nclass Spread(Base):\n    def mean(self, x):\n        y = x\n        return y\n",
        "y = x\n        return y",
    ] {
        assert_eq!(text("Spread.mean", reply), wanted, "{reply}");
    }
}

#[test]
fn a_method_of_another_class_of_the_file_is_not_accepted() {
    let file = "class Bins:\n    def fit(self, x):\n        return 1\n\n\nclass Steps:\n    def fit(self, x):\n        raise NotImplementedError\n";
    let file = Module::parse("fits.py", file.into()).unwrap();
    let fit = |reply: &str| file.splice(file.find("Steps.fit").unwrap(), reply);
    let of = |class: &str| format!("class {class}:\n    def fit(self, x):\n        return 2\n");
    let told = fit(&of("Bins")).unwrap_err();
    assert_eq!(told, "`fit` is written as a method of another class, `Bins`");
    for reply in [of("Steps"), of("Stairs"), of("Steps") + &of("Bins"), "def fit(self, x):\n    return 2\n".to_owned()]
    {
        assert!(
            String::from_utf8(fit(&reply).unwrap().bytes)
                .unwrap()
                .ends_with("class Steps:\n    def fit(self, x):\n        return 2\n"),
            "{reply}"
        );
    }
}

#[test]
fn only_missing_names_that_the_code_needs_are_added() {
    let reply = "import math\nimport os\nimport numpy as np\nfrom a.b import c as d, e\nfrom __future__ import annotations\n\
                 LIMIT = 3\nUNUSED = 4\n\ndef helper(x):\n    return d(x) * LIMIT\n\ndef unused(x):\n    return x\n\n\
                 def mean(values, *, weights=None):\n    return np.mean(helper(math.fsum(values)))\n\nprint(mean([1]))\n";
    let spliced = into("mean", reply).unwrap();
    assert_eq!(
        spliced.added.iter().cloned().collect::<BTreeSet<_>>(),
        ["LIMIT", "d", "helper", "np"].map(str::to_owned).into()
    );
    let text = String::from_utf8(spliced.bytes).unwrap();
    assert!(text.starts_with(
        "\"\"\"Means.\"\"\"\n\nimport math\nimport numpy as np\nfrom a.b import c as d\n\n\nLIMIT = 3\n\n\ndef helper(x):\n    \
         return d(x) * LIMIT\n\n\n# Of a list.\n@cached\ndef mean("
    ), "{text}");
    assert!(!text.contains("unused") && !text.contains("print"));
}

#[test]
fn new_methods_are_added_to_a_class_if_the_replaced_method_calls_them() {
    let reply = "class Spread:\n  def mean(self, x):\n    return self._half(x)\n  def _half(self, x):\n    return x / 2\n  def other(self):\n    return 7\n  def idle(self):\n    return 0\n";
    let text = text("Spread.mean", reply);
    assert!(text.contains("        return self._half(x)\n\n    def _half(self, x):\n      return x / 2\n\n    def other(self):\n        return 1\n"), "{text}");
    assert!(!text.contains("idle"));
}

#[test]
fn a_function_beside_a_bare_method_becomes_a_method_if_it_is_used_as_one() {
    let reply = "def mean(self, x):\n    return half(self._sum(x))\n\ndef _sum(self, x):\n    return sum(x)\n\ndef half(x):\n    return x / 2\n";
    let text = text("Spread.mean", reply);
    assert!(
        text.contains("        return half(self._sum(x))\n\n    def _sum(self, x):\n        return sum(x)\n"),
        "{text}"
    );
    assert!(text.contains("\n\ndef half(x):\n    return x / 2\n\n\nclass Spread:"), "{text}");
}

#[test]
fn an_example_of_a_call_is_left_out_although_it_uses_the_names_of_variables() {
    let function = "def mean(values, *, weights=None):\n    result = sum(values) / len(values)\n    return result\n";
    let body = "    result = sum(values) / len(values)\n    return result\n";
    for example in [
        "if __name__ == \"__main__\":\n    values = [1, 2, 3]\n    result = mean(values)\n    print(result)\n",
        "values = [1, 2, 3]\nresult = mean(values)\nprint(result)\n",
        "for values in [[1], [2]]:\n    result = mean(values, weights=None)\n",
    ] {
        assert_eq!(text("mean", &format!("```python\n{function}\n{example}```")), with_body(body), "{example}");
    }
}

#[test]
fn a_function_inside_of_a_body_is_not_taken_for_the_renamed_function() {
    let reply = "```python\ndef scaled(values, *, weights=None):\n    return values[0] * 2\nreturn scaled(values)\n```";
    let expected =
        "    def scaled(values, *, weights=None):\n        return values[0] * 2\n    return scaled(values)\n";
    assert_eq!(text("mean", reply), with_body(expected));
}

#[test]
fn imports_and_helpers_in_other_blocks_or_among_prose_are_found() {
    let function = "def mean(values, *, weights=None):\n    return np.mean(values)\n";
    for reply in [
        format!("First the import:\n```python\nimport numpy as np\n```\nThen:\n```python\n{function}```"),
        format!("Here it is:\nimport numpy as np\n\n{function}\nIt isn't hard."),
        format!("```python\n!pip install numpy\nimport numpy as np\n{function}```"),
        format!("```python\n{function}```\nIt needs:\n```python\nimport numpy as np\nimport unused\n```"),
    ] {
        let text = text("mean", &reply);
        let expected =
            with_body("    return np.mean(values)\n").replacen("import math", "import math\nimport numpy as np", 1);
        assert_eq!(text, expected, "{reply}");
    }
    let reply = "```python\ndef mean(values, *, weights=None):\n    return half(sum(values))\n```\nwith\n```python\ndef half(x):\n    return x / 2\n```";
    assert!(text("mean", reply).contains("\n\n\ndef half(x):\n    return x / 2\n\n\n# Of a list.\n"));
    let guarded = "```python\ntry:\n    import cupy as xp\nexcept ImportError:\n    xp = math\n\ndef mean(values, *, weights=None):\n    return xp.fsum(values)\n```";
    assert!(
        text("mean", guarded).contains("\n\ntry:\n    import cupy as xp\nexcept ImportError:\n    xp = math\n\n\n# Of")
    );
}

#[test]
fn the_signature_is_replaced_only_if_its_parameters_differ() {
    let same = into("mean", "def mean(values, *, weights=1.0) -> int:\n    return 0\n").unwrap();
    assert!(!same.new_signature);
    let other = into("mean", "def mean(numbers):\n    return sum(numbers)\n").unwrap();
    assert!(other.new_signature);
    let text = String::from_utf8(other.bytes).unwrap();
    assert!(
        text.contains("@cached\ndef mean(numbers):\n    \"\"\"The mean.\"\"\"\n    return sum(numbers)\n"),
        "{text}"
    );
}

#[test]
fn strings_over_several_lines_keep_their_text() {
    let reply =
        "def mean(values, *, weights=None):\n        text = \"\"\"a\n        b\n    \"\"\"\n        return text\n";
    assert_eq!(text("mean", reply), with_body("    text = \"\"\"a\n        b\n    \"\"\"\n    return text\n"));
}

#[test]
fn line_endings_and_tabs_of_the_file_are_kept() {
    let source = "class A:\r\n\tdef f(self):\r\n\t\traise NotImplementedError\r\n";
    let file = Module::parse("a.py", source.into()).unwrap();
    let spliced = file.splice(0, "```\ndef f(self):\n    if self:\n        return 1\n    return 2\n```").unwrap();
    assert_eq!(
        String::from_utf8(spliced.bytes).unwrap(),
        "class A:\r\n\tdef f(self):\r\n\t\tif self:\r\n\t\t    return 1\r\n\t\treturn 2\r\n"
    );
}

#[test]
fn replies_without_code_are_refused_with_a_reason() {
    let fault = |reply: &str| into("mean", reply).unwrap_err();
    insta::assert_snapshot!(fault(""), @"the reply holds no Python code of `mean`");
    insta::assert_snapshot!(fault("Sorry"), @"the reply holds no Python code of `mean`");
    insta::assert_snapshot!(fault("I cannot do that, since the paper does not say."), @"the reply holds no Python code of `mean`");
    insta::assert_snapshot!(fault("```python\ndef mean(values):\n    raise NotImplementedError\n```"), @"`mean` still only raises NotImplementedError");
    insta::assert_snapshot!(fault("def mean(values):\n    \"\"\"Only words.\"\"\"\n    # and these\n"), @"`mean` has no code in its body");
    insta::assert_snapshot!(fault("```python\ndef mean(values):\n    return (sum(values\n```"), @"`mean` does not parse: syntax error at `return (sum(values`");
}

#[test]
fn a_stub_in_the_last_block_does_not_hide_the_code_before_it() {
    let reply = "```\ndef mean(values, *, weights=None):\n    return sum(values) / len(values)\n```\nin place of\n```\ndef mean(values, *, weights=None):\n    raise NotImplementedError\n```\n";
    assert_eq!(text("mean", reply), with_body(SUM));
}

#[test]
fn from_a_truncated_file_only_the_class_of_the_replaced_method_is_used() {
    let right = "class Spread:\n    def mean(self, x):\n        return x\n\n";
    let torn = "class Later:\n    def mean(self, x):\n        return (x +\n";
    let other = "class Early:\n    def mean(self, x):\n        return 7\n\n";
    let taken = text("Spread.mean", &format!("```python\n{other}{right}{torn}"));
    assert!(taken.contains("    def mean(self, x):\n        return x\n"), "{taken}");
    let stub = right.replace("return x", "raise NotImplementedError");
    let fault = into("Spread.mean", &format!("```python\n{other}{stub}{torn}")).unwrap_err();
    assert_eq!(fault, "`mean` still only raises NotImplementedError");
    let fault = into("Spread.mean", &format!("```python\n{torn}")).unwrap_err();
    assert_eq!(fault, "the reply holds no Python code of `mean`");
}

/// Generates replies from pieces of valid replies, in any order and cut anywhere.
fn mutated() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("```python\n"),
        Just("```\n"),
        Just("def mean(values, *, weights=None):\n"),
        Just("    def mean(self, x):\n"),
        Just("class Spread:\n"),
        Just("@cached\n"),
        Just("    return sum(values)\n"),
        Just("        return np.mean(x)\n"),
        Just("import numpy as np\n"),
        Just("from a import (b,\n c)\n"),
        Just("    text = \"\"\"a\n  b\"\"\"\n"),
        Just("\"\"\""),
        Just("def helper(x):\n    return x\n"),
        Just("    helper(values); b\n"),
        Just("Here is the code:\n"),
        Just("\t"),
        Just("\\\n"),
        Just("\u{e9}\u{1f980}"),
        Just("\r"),
        Just("(["),
        Just(")]:"),
    ];
    (vec(piece, 0..14), any::<prop::sample::Index>()).prop_map(|(pieces, cut)| {
        let text: Vec<char> = pieces.concat().chars().collect();
        text.iter().take(text.len().max(1) - cut.index(text.len().max(1)) / 2).collect()
    })
}

/// Checks the properties of every splice: outside of the function there are only insertions, and the file has the same
/// functions as before.
fn holds(name: &str, reply: &str) {
    let Ok(spliced) = into(name, reply) else { return };
    let before = file();
    let target = before.find(name).unwrap();
    let whole = before.functions()[target].whole.clone();
    let body = before.functions()[target].body.clone();
    let mut replaced = 0;
    for (range, _) in &spliced.edits {
        if range.is_empty() {
            assert!(range.start <= whole.start || range.start >= body.end, "inserted into the function");
        } else {
            replaced += 1;
            assert!(range.start >= whole.start && range.end <= body.end.max(whole.end), "{range:?} is outside");
        }
    }
    assert!(replaced <= 1);
    let after = Module::parse("means.py", spliced.bytes).unwrap();
    for (index, function) in before.functions().iter().enumerate().filter(|(index, _)| *index != target) {
        let now = &after.functions()[after.find(&function.label()).unwrap()];
        assert_eq!(&before.source()[function.whole.clone()], &after.source()[now.whole.clone()], "function {index}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn splicing_any_reply_never_panics_and_never_changes_code_outside_the_replaced_function(
        reply in prop_oneof![3 => mutated(), 1 => ".{0,80}", 1 => "[def mean(x):\n \t\"'#@\\\\`]{0,80}"],
        method in any::<bool>(),
    ) {
        holds(if method { "Spread.mean" } else { "mean" }, &reply);
    }
}
