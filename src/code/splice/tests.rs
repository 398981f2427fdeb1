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
fn a_function_inside_of_a_body_without_return_is_not_taken_for_the_renamed_function() {
    let function = "def scale(values, *, weights=None):\n    return [value / 2 for value in values]\n";
    let body = format!(
        "{}    values[:] = scale(values)\n",
        function.replace("def", "    def").replace("    return", "        return")
    );
    assert_eq!(text("mean", &format!("```python\n{function}values[:] = scale(values)\n```")), with_body(&body));
    for example in ["values = [1, 2]\nprint(scale(values))\n", "for values in [[1], [2]]:\n    scale(values)\n"] {
        let expected = with_body("    return [value / 2 for value in values]\n");
        assert_eq!(text("mean", &format!("```python\n{function}{example}```")), expected, "{example}");
    }
}

#[test]
fn imports_and_helpers_in_other_blocks_or_among_prose_are_found() {
    let function = "def mean(values, *, weights=None):\n    return np.mean(values)\n";
    for reply in [
        format!("First the import:\n```python\nimport numpy as np\n```\nThen:\n```python\n{function}```"),
        format!("Here it is:\nimport numpy as np\n\n{function}\nIt isn't hard."),
        format!("```python\n!pip install numpy\nimport numpy as np\n{function}```"),
        format!("```python\n{function}```\nIt needs:\n```python\nimport numpy as np\nimport unused\n```"),
        "```python\nimport numpy as np\n```\n```python\nreturn np.mean(values)\n```".to_owned(),
        format!("```python\nimport numpy as np\n```\n```python\n{}```", function.replacen("mean", "average", 1)),
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
fn a_piece_of_the_body_in_another_block_is_not_put_into_the_module() {
    let reply = "```python\ntotal = sum(values)\n```\n```python\nreturn total / len(values)\n```";
    assert_eq!(text("mean", reply), with_body("    return total / len(values)\n"));
}

#[test]
fn helpers_are_added_in_the_order_of_the_reply_but_after_the_helpers_that_they_need() {
    let function = "def mean(values, *, weights=None):\n    return TABLE[0]\n";
    let wanted = "\n\n\nBASE = 2\n\n\nTABLE = [BASE] * 3\n\n\n# Of a list.\n";
    for reply in [
        format!("```python\nBASE = 2\n```\n```python\nTABLE = [BASE] * 3\n```\n```python\n{function}```"),
        format!("```python\nBASE = 2\n{function}```\nwith\n```python\nTABLE = [BASE] * 3\n```"),
        format!("```python\n{function}```\nwith\n```python\nTABLE = [BASE] * 3\n```\nand\n```python\nBASE = 2\n```"),
    ] {
        let text = text("mean", &reply);
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn a_variable_that_the_function_declares_as_global_is_added() {
    let reply = "_cache = None\n\ndef mean(values, *, weights=None):\n    global _cache\n    _cache = sum(values)\n    return _cache\n";
    assert!(text("mean", reply).contains("\n\n\n_cache = None\n\n\n# Of a list.\n"));
}

#[test]
fn imports_of_decorators_and_annotations_that_are_not_used_are_not_added() {
    let reply = "from numba import njit\nfrom typing import Any\n\n@njit\ndef mean(values: Any, *, weights=None):\n    return sum(values) / len(values)\n";
    assert_eq!(text("mean", reply), with_body(SUM));
    let reply = "from numba import njit\n\n@njit\ndef mean(numbers):\n    return 0\n";
    assert_eq!(into("mean", reply).unwrap().added, ["njit"], "a new signature comes with its decorators");
}

/// Returns the file `source` with the reply's version of its function `f`.
fn with_f(source: &str, reply: &str) -> String {
    let file = Module::parse("f.py", source.into()).unwrap();
    String::from_utf8(file.splice(file.find("f").unwrap(), reply).unwrap().bytes).unwrap()
}

#[test]
fn an_import_that_clashes_with_an_import_of_the_file_is_put_into_the_function() {
    let source = "import time\nfrom math import sqrt\nimport numpy as np\n\n\ndef f(x):\n    \"\"\"Doc.\"\"\"\n    raise NotImplementedError\n\n\nstart = time.time()\n";
    let reply = "from time import time\nfrom numpy import sqrt\nimport numpy as np\n\ndef f(x):\n    return sqrt(x) + time() + np.e\n";
    let body = "    from time import time\n    from numpy import sqrt\n    return sqrt(x) + time() + np.e";
    assert_eq!(with_f(source, reply), source.replace("    raise NotImplementedError", body));
    // These two imports import the same module, so the reply's import is not added.
    let source = "import torch.nn.functional as F\n\n\ndef f(x):\n    raise NotImplementedError\n";
    let reply = "from torch.nn import functional as F\n\ndef f(x):\n    return F.relu(x)\n";
    assert_eq!(with_f(source, reply), source.replace("raise NotImplementedError", "return F.relu(x)"));
}

#[test]
fn a_guessed_import_does_not_replace_an_import_or_a_definition_of_the_file() {
    for own in ["from .utils import softmax", "from math import exp as softmax", "def softmax(x):\n    return x"] {
        let source = format!("import numpy as np\n{own}\n\n\ndef f(x):\n    raise NotImplementedError\n");
        let reply = "from utils import softmax\n\ndef f(x):\n    return softmax(x)\n";
        assert_eq!(with_f(&source, reply), source.replace("raise NotImplementedError", "return softmax(x)"));
    }
}

#[test]
fn an_import_from_another_place_in_the_same_package_is_not_preferred_to_the_files_own() {
    for (own, guess) in [
        ("from utils.metrics import acc", "from utils import acc"),
        ("from models.backbones import acc", "from models.resnet import acc"),
        ("from scipy.integrate import simpson as acc", "from scipy.integrate import simps as acc"),
    ] {
        let source = format!("{own}\n\n\ndef f(x):\n    raise NotImplementedError\n");
        let reply = format!("{guess}\n\ndef f(x):\n    return acc(x)\n");
        assert_eq!(with_f(&source, &reply), source.replace("raise NotImplementedError", "return acc(x)"));
    }
}

#[test]
fn an_import_from_another_module_of_a_library_is_put_into_the_function() {
    let source = "from scipy.linalg import norm\n\n\ndef f(x):\n    raise NotImplementedError\n";
    let reply = "from scipy.stats import norm\n\ndef f(x):\n    return norm.cdf(x)\n";
    let body = "from scipy.stats import norm\n    return norm.cdf(x)";
    assert_eq!(with_f(source, reply), source.replace("raise NotImplementedError", body));
}

#[test]
fn a_new_helper_is_put_into_the_function_if_it_needs_what_only_the_function_has() {
    let source = "import time\n\n\ndef scale(x):\n    return x\n\n\ndef f(x):\n    raise NotImplementedError\n";
    let reply = "from time import time\n\ndef scale(x, by):\n    return by * x\n\ndef now():\n    return time()\n\n\
                 def twice(x):\n    return scale(x, 2)\n\ndef late():\n    return now()\n\ndef one():\n    return 1\n\n\
                 def f(x):\n    return late() - twice(x) + one()\n";
    let text = with_f(source, reply);
    for helper in ["from time import time", "def scale(x, by)", "def now()", "def twice(x)", "def late()"] {
        assert!(text.contains(&format!("\n    {helper}")), "{helper}\n{text}");
    }
    assert!(text.contains("\ndef one()") && text.contains("\ndef scale(x):"), "{text}");
}

#[test]
fn imports_are_added_above_the_helpers_that_need_them() {
    let source = "# Tools.\ndef f(x):\n    raise NotImplementedError\n";
    let reply = "from functools import lru_cache\n\n@lru_cache(None)\ndef g(x):\n    return x\n\n\
                 def f(x):\n    return g(x)\n";
    let expected = "from functools import lru_cache\n@lru_cache(None)\ndef g(x):\n    return x\n\n\n\
                    # Tools.\ndef f(x):\n    return g(x)\n";
    assert_eq!(with_f(source, reply), expected);
}

#[test]
fn an_example_of_a_call_in_the_last_block_is_not_taken_for_the_body() {
    let reply = "```python\nreturn sum(values) / len(values)\n```\nFor example:\n```python\nprint(mean([1, 2]))\n```";
    assert_eq!(text("mean", reply), with_body(SUM));
}

#[test]
fn a_helper_with_other_parameters_than_the_files_function_is_put_into_the_function() {
    let source = "import math\n\n\ndef scale(x):\n    return x\n\n\ndef f(x):\n    raise NotImplementedError\n\n\ny = scale(1)\n";
    let helper = "def scale(x, by):\n    \"\"\"a\nb\"\"\"\n    return np.dot(x, by)\n";
    let reply = format!("import numpy as np\n\n{helper}\ndef f(x):\n    return scale(x, 2)\n");
    let body =
        "    def scale(x, by):\n        \"\"\"a\nb\"\"\"\n        return np.dot(x, by)\n\n    return scale(x, 2)";
    let expected =
        source.replace("    raise NotImplementedError", body).replace("import math", "import math\nimport numpy as np");
    assert_eq!(with_f(source, &reply), expected);
    let unchanged = source.replace("raise NotImplementedError", "return scale(x, 2)");
    let stubs = ["def scale(x, by):\n    ...  # as above\n", "def scale(x, by):\n    return None\n"];
    for own in stubs.into_iter().chain(["def scale(x):\n    return 2 * x\n", "scale = None\n"]) {
        let reply = format!("{own}\ndef f(x):\n    return scale(x, 2)\n");
        assert_eq!(with_f(source, &reply), unchanged, "{own}");
    }
    // Inside of `f`, the variable `math` would hide the module that the helper needs.
    let reply = format!("{}\ndef f(x):\n    math = 2\n    return scale(x, math)\n", helper.replace("np", "math"));
    assert!(!with_f(source, &reply).contains("by"));
}

#[test]
fn a_property_is_read_from_the_getter_in_the_reply_and_its_setter_from_the_setter() {
    let own = "class A:\n    @property\n    def x(self):\n        raise NotImplementedError\n";
    let setter = "\n    @x.setter\n    def x(self, value):\n        raise NotImplementedError\n";
    let get = "@property\ndef x(self):\n    return self._x\n\n";
    let set = "@x.setter\ndef x(self, value):\n    self._x = value\n";
    let class = |code: &str| {
        format!(
            "class A:\n{}",
            code.replace('@', "    @")
                .replace("def", "    def")
                .replace("    ret", "        ret")
                .replace("    self.", "        self.")
        )
    };
    let spliced = |source: &str, label: &str, reply: &str| {
        let file = Module::parse("a.py", source.into()).unwrap();
        let spliced = file.splice(file.find(label).unwrap(), reply).unwrap();
        assert!(!spliced.new_signature);
        String::from_utf8(spliced.bytes).unwrap()
    };
    let both = format!("{own}{setter}");
    for reply in [format!("{get}{set}"), class(&format!("{get}{set}")), format!("{set}\n{get}")] {
        assert_eq!(spliced(own, "A.x", &reply), own.replace("raise NotImplementedError", "return self._x"), "{reply}");
        let expected = both.replacen("raise NotImplementedError", "return self._x", 1);
        assert_eq!(spliced(&both, "A.x#1", &reply), expected, "{reply}");
        let expected = format!("{own}{}", setter.replace("raise NotImplementedError", "self._x = value"));
        assert_eq!(spliced(&both, "A.x#2", &reply), expected, "{reply}");
    }
}

#[test]
fn a_definition_is_required_if_statements_cannot_replace_the_function() {
    let file = file();
    let mean = file.find("mean").unwrap();
    let function = "def mean(values, *, weights=None):\n    return sum(values) / len(values)\n";
    let spliced = file.splice_definition(mean, function).unwrap();
    assert_eq!(String::from_utf8(spliced.bytes).unwrap(), with_body(SUM));
    for other in ["return sum(values) / len(values)".to_owned(), function.replace("mean", "average")] {
        let fault = file.splice_definition(mean, &other).unwrap_err();
        assert!(fault.starts_with("the reply does not define `mean`"), "{fault}");
    }
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
    let body = "text = \"\"\"a\nb\n  \"\"\"\nreturn text\n";
    let expected = with_body("    text = \"\"\"a\nb\n  \"\"\"\n    return text\n");
    assert_eq!(text("mean", &format!("```python\n{body}```")), expected);
    let listed = body.replace('\n', "\n   ");
    assert_eq!(text("mean", &format!("1. This:\n   ```python\n   {listed}```\n")), expected);
    // The method is indented as in its class, but a string in it has lines that are not indented.
    let method = "    def mean(self, x):\n        text = \"\"\"\n    a\nb\"\"\"\n        return text";
    let expected = FILE.replacen(
        "        raise NotImplementedError",
        "        text = \"\"\"\n    a\nb\"\"\"\n        return text",
        1,
    );
    assert_eq!(text("Spread.mean", &format!("```python\n{method}\n```")), expected);
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
    let torn = "```python\ndef mean(values, *, weights=None):\n    total = 0\n    def part(v):\n        return v\n    for v in values:\n        total += part(v";
    assert!(fault(torn).starts_with("`mean` does not parse"), "{}", fault(torn));
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
