//! Regions of functions: in generated sources, in real sources judged by Python itself, and in the program end to end.

use std::path::PathBuf;

use autoexperiment::code::{Bounds, MaskedPart, Module, index_tree};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;

use crate::support::Lab;
use crate::support::judge::{Judge, standard_library};

/// An item of a block.
#[derive(Debug, Clone)]
enum Item {
    /// A statement; the number in it makes its text unique.
    Simple(&'static str),
    Comment,
    Blank,
    Compound(&'static str, Vec<Item>),
}

/// Simple statements; `@` is replaced by a number.
const SIMPLE: [&str; 7] = [
    "x@ = g(1)  # why",
    "x@ = '# no comment'",
    "x@ = (1,\n2)",
    "x@ = '''\n# text\n    '''",
    "x@ = 1 + \\\n  2",
    "return x@, {'a': 1}",
    "raise NotImplementedError(@)",
];
const HEADERS: [&str; 5] = ["if x@:", "for x in y@:  # why", "while (x@ and\n z):", "def g@(a):", "with a@ as b, c:"];

fn items(depth: u32) -> BoxedStrategy<Vec<Item>> {
    let leaf = prop_oneof![
        4 => select(&SIMPLE[..]).prop_map(Item::Simple),
        1 => Just(Item::Comment),
        1 => Just(Item::Blank),
    ];
    let item = if depth == 0 {
        leaf.boxed()
    } else {
        let compound = (select(&HEADERS[..]), items(depth - 1)).prop_map(|(header, body)| Item::Compound(header, body));
        prop_oneof![4 => leaf, 1 => compound].boxed()
    };
    proptest::collection::vec(item, 1..6).boxed()
}

/// Writer of a function, which also records the lines of a region in it.
struct Writer {
    unit: &'static str,
    lines: Vec<String>,
    number: usize,
    /// Number of the block whose statements are masked. Blocks are numbered in the order in which they begin. `chosen`
    /// are the first and the last masked statement of the block.
    block: usize,
    chosen: (Index, Index),
    blocks: usize,
    region: Option<Region>,
}

struct Region {
    lines: std::ops::Range<usize>,
    indent: String,
    first: String,
    last: String,
    nested: bool,
}

impl Writer {
    fn text(&mut self, indent: &str, text: &str) -> String {
        self.number += 1;
        let text = text.replace('@', &self.number.to_string());
        self.lines.extend(format!("{indent}{text}").split('\n').map(str::to_owned));
        text.split("  #").next().unwrap().to_owned()
    }

    fn block(&mut self, indent: &str, items: &[Item], nested: bool) {
        let this = self.blocks;
        self.blocks += 1;
        // End every block with a statement, so that no block is empty or ends in a comment.
        let with_end: Vec<Item> = items.iter().cloned().chain([Item::Simple("end(@)")]).collect();
        let statements: Vec<usize> =
            (0..with_end.len()).filter(|&at| matches!(with_end[at], Item::Simple(_) | Item::Compound(..))).collect();
        let (a, b) = (self.chosen.0.index(statements.len()), self.chosen.1.index(statements.len()));
        let (first, last) = (statements[a.min(b)], statements[a.max(b)]);
        let (mut from, mut texts) = (0, (String::new(), String::new()));
        let mut comments = self.lines.len();
        for (place, item) in with_end.iter().enumerate() {
            if !matches!(item, Item::Comment) && place <= first {
                from = comments;
            }
            let text = match item {
                Item::Simple(text) => self.text(indent, text),
                Item::Comment => self.text(indent, "# hint @"),
                Item::Blank => {
                    self.lines.push(String::new());
                    String::new()
                }
                Item::Compound(header, body) => {
                    let text = self.text(indent, header);
                    let inner = nested || header.starts_with("def");
                    self.block(&format!("{indent}{}", self.unit), body, inner);
                    text
                }
            };
            if !matches!(item, Item::Comment) {
                comments = self.lines.len();
            }
            if place == first {
                texts.0.clone_from(&text);
            }
            if place == last {
                texts.1 = text;
                if this == self.block {
                    let mut end = self.lines.len();
                    while self.lines[end - 1].is_empty() {
                        end -= 1;
                    }
                    let (first, last) = texts.clone();
                    self.region = Some(Region { lines: from..end, indent: indent.to_owned(), first, last, nested });
                }
            }
        }
        self.lines.push(format!("{indent}# behind"));
        if this == self.block && last == *statements.last().unwrap() {
            let end = self.lines.len();
            self.region.as_mut().unwrap().lines.end = end;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn regions_of_generated_functions_are_masked_as_their_generator_expects(
        items in items(3),
        unit in select(&["    ", "\t", "  "][..]),
        ending in select(&["\n", "\r\n", "\r"][..]),
        block in any::<Index>(),
        chosen in any::<(Index, Index)>(),
    ) {
        let mut count = Writer { unit, lines: Vec::new(), number: 0, block: usize::MAX, chosen, blocks: 0, region: None };
        count.block(unit, &items, false);
        let block = block.index(count.blocks);
        let mut writer = Writer { unit, lines: Vec::new(), number: 0, block, chosen, blocks: 0, region: None };
        writer.lines.push("def f(y):".to_owned());
        writer.block(unit, &items, false);
        let region = writer.region.unwrap();
        writer.lines.extend(["# outside".to_owned(), "z = 1".to_owned(), String::new()]);
        let source = writer.lines.join(ending);
        let module = Module::parse("m.py", source.clone().into_bytes()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let bounds = Bounds::Statements { first: &region.first, last: Some(&region.last), number: None };
        let found = module.region(Some(0), bounds);
        if region.nested {
            prop_assert!(found.is_err(), "statements of a nested function are not the outer one's");
            return Ok(());
        }
        let found = found.map_err(|error| TestCaseError::fail(format!("{error}\n{source}")))?;
        let mut expected = writer.lines.clone();
        expected.splice(region.lines, [format!("{}raise NotImplementedError", region.indent)]);
        let masked = module.cut_checked(&[MaskedPart::Region(&found)]).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(String::from_utf8(masked.bytes).unwrap(), expected.join(ending));
        // Putting the region's original text in place of its stand-in restores the source to the byte.
        let own = String::from_utf8(module.source()[found.range.clone()].to_vec()).unwrap();
        let masked = module.cut(&[MaskedPart::Region(&found)]).unwrap();
        let mut whole = masked.bytes;
        whole.splice(masked.stand_ins[0].clone(), own.into_bytes());
        prop_assert_eq!(String::from_utf8(whole).unwrap(), source);
    }

    #[test]
    fn no_reply_for_a_region_panics_or_changes_code_outside_its_function(
        pieces in proptest::collection::vec(select(&[
            "```python\n", "```\n", "def f(xs):\n", "    total = 0\n", "    for x in xs:\n", "        total += x\n", "    return total\n",
            "y = x * x\n", "total += y\n", "import numpy as np\n", "break\n", "    text = \"\"\"a\n  b\"\"\"\n", "\"\"\"", "Here it is:\n", "\t", "\\\n", "é", "([", ")]:",
            "raise NotImplementedError\n", "class C:\n", "\r",
        ][..]), 0..12),
    ) {
        let source = "import math\n\n\ndef f(xs):\n    total = 0\n    for x in xs:\n        y = x * x\n        total += y\n    return total\n\n\ndef other():\n    return 1\n";
        let module = Module::parse("m.py", source.into()).unwrap();
        let bounds = Bounds::Statements { first: "y = x", last: Some("total +="), number: None };
        let region = module.region(Some(0), bounds).unwrap();
        let masked = module.cut(&[MaskedPart::Region(&region)]).unwrap();
        let at = masked.stand_ins[0].clone();
        let module = Module::parse("m.py", masked.bytes).unwrap();
        if let Ok(spliced) = module.splice_region(Some(0), &at, &pieces.concat()) {
            let after = Module::parse("m.py", spliced.bytes.clone()).unwrap();
            let other = |module: &Module| {
                let index = module.find("other").unwrap();
                module.source()[module.functions()[index].whole.clone()].to_vec()
            };
            prop_assert_eq!(other(&module), other(&after));
            if let Some(now) = spliced.moved(&at) {
                prop_assert_eq!(&spliced.bytes[now.end..], &module.source()[at.end..]);
            }
        }
    }
}

#[test]
fn every_proposed_region_of_a_package_is_masked_correctly_according_to_pythons_parser() {
    judge(&[standard_library().join("json")], 80);
}

#[test]
#[ignore = "masks regions of every function of a large package, which takes a minute"]
fn every_proposed_region_of_a_large_package_is_masked_correctly_according_to_pythons_parser() {
    judge(&[standard_library().join("email")], 300);
}

fn judge(roots: &[PathBuf], expected: usize) {
    let mut judge = Judge::start("python3".as_ref(), "region_oracle.py", &[]);
    let (mut checked, mut compound, mut failures) = (0, 0, Vec::new());
    for root in roots {
        for (path, module) in index_tree(root) {
            let foreign = path.components().any(|part| part.as_os_str() == "site-packages");
            let Some(module) = module.ok().filter(|_| !foreign) else { continue };
            judge.send(json!({"op": "file", "path": root.join(&path)}), b"");
            let mut here = 0;
            for index in 0..module.functions().len() {
                let function = &module.functions()[index];
                for proposal in module.propose(index, &[0.2, 0.33, 0.5, 0.7]).unwrap() {
                    let region = &proposal.region;
                    let masked = module.cut_checked(&[MaskedPart::Region(region)]).unwrap();
                    let frame = json!({
                        "op": "mask", "label": function.label(), "line": function.first_line,
                        "first": region.first_line, "last": region.last_line,
                    });
                    judge.send(frame, &masked.bytes);
                    here += 1;
                }
            }
            judge.send(json!({"op": "end"}), b"");
            let answer = judge.answer();
            if answer.get("rejected").is_some() {
                continue;
            }
            checked += here;
            compound += answer["compound"].as_u64().unwrap();
            failures
                .extend(answer["failures"].as_array().unwrap().iter().map(|it| format!("{}: {it}", path.display())));
        }
    }
    judge.end();
    println!("{checked} regions, {compound} with loops and the like, {} wrong", failures.len());
    assert!(
        failures.is_empty(),
        "{} wrong, among them:\n{}",
        failures.len(),
        failures[..failures.len().min(30)].join("\n")
    );
    assert!(checked >= expected, "only {checked} regions were checked");
}

const REGIONS: &str = r#"
[[region]]
name = "loop"
at = "plain/figures.py::pairs"
first = "while place < len(values):"
description = "Collects the products."
passages = ["Figures"]

[[region]]
name = "product"
at = "plain/figures.py::pairs"
first = "products.append"
last = "place = place + 1"
description = "Takes one product and goes on."
passages = ["Figures"]

[[region]]
name = "add"
at = "plain/figures.py::total"
first = "result += value"
description = "Adds one value."
passages = ["Figures"]
"#;

/// Makes a lab of the tree `measured` with regions in one paper.
fn lab() -> Lab {
    let lab = Lab::of("measured", "bare", &["plain", "odd"]);
    lab.write("papers/plain/paper.toml", &(lab.read("papers/plain/paper.toml") + REGIONS));
    lab
}

fn samples(lab: &Lab, arguments: &[&str]) -> Vec<String> {
    let lines = lab.ok(&[&["sample", "-p", "plain"], arguments].concat()).stdout;
    let id =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["sample"].as_str().unwrap().to_owned();
    lines.lines().map(id).collect()
}

#[test]
fn regions_of_a_manifest_are_drawn_masked_measured_checked_and_attempted_like_functions() {
    let lab = lab();
    // By default only functions are masked, and their samples are the same as in a paper without regions.
    let before = Lab::of("measured", "bare", &["plain", "odd"]);
    let draw = ["-n", "1..3", "--limit", "9", "--seed", "4"];
    assert_eq!(samples(&lab, &draw), samples(&before, &draw));
    let mut regions = samples(&lab, &["-n", "1..3", "--units", "regions"]);
    regions.sort();
    // Region 20 contains region 21, so no sample masks both.
    assert_eq!(regions, ["plain_20", "plain_20,22", "plain_21", "plain_21,22", "plain_22"]);
    let mixed = samples(&lab, &["-n", "2", "--units", "all", "--limit", "1000"]);
    assert_eq!(mixed.len(), 23 * 22 / 2 - 4, "pairs holds 20 and 21, 20 holds 21, total holds 22");
    assert!(lab.fails(2, &["mask", "plain", "-f", "15,21"]).contains("a function and what is nested in it"));

    let diff = lab.ok(&["mask", "plain", "-f", "1,21"]).stdout;
    let removed = "-        products.append(values[place - 1] * values[place])\n-        place = place + 1\n+        raise NotImplementedError\n";
    assert!(diff.contains(removed) && diff.contains("+    raise NotImplementedError"), "{diff}");

    // Measure only a part: the regions and the functions and experiments near them.
    let near = ["figures.py::total\"", "figures.py::squares\"", "figures.py::pairs\"", "figures.py::mirror\""];
    crate::verify::keep(&lab, "plain", &[&near[..], &["\"products\"", "\"mirrors\""]].concat());
    lab.ok(&["verify", "plain", "--mutants", "3"]);
    let matrix: serde_json::Value = serde_json::from_str(&lab.read("papers/plain/dependencies.json")).unwrap();
    let needing = |unit: &str| -> Vec<&String> {
        let needs = matrix["needs"].as_object().unwrap().iter();
        needs.filter(|(_, units)| units.as_array().unwrap().iter().any(|it| it == unit)).map(|(id, _)| id).collect()
    };
    assert_eq!(needing("plain/figures.py::pairs[product]"), needing("plain/figures.py::pairs"));
    assert_eq!(needing("plain/figures.py::total[add]"), needing("plain/figures.py::total"));
    let evidence: serde_json::Value = serde_json::from_str(&lab.read("papers/plain/evidence.json")).unwrap();
    assert_eq!(evidence["functions"]["plain/figures.py::total[add]"]["mutants"], 3);
    lab.ok(&["check", "plain"]);
    let list = lab.ok(&["list", "plain"]).stdout;
    assert!(list.contains("plain/figures.py::pairs[loop]"), "{list}");

    let run = ["run", "-p", "plain", "--units", "all", "-n", "2", "--limit", "5", "--seed", "3", "--name", "r"];
    lab.ok(&[&run[..], &["--agent", "gold", "--agent", "noop", "--agent", "mutant:1"]].concat());
    let rows: serde_json::Value = serde_json::from_str(&lab.ok(&["report", "runs/r", "--json"]).stdout).unwrap();
    let passed = |agent: &str| {
        let row = rows["rows"].as_array().unwrap().iter().find(|row| row["agent"] == agent).unwrap().clone();
        (row["passed"].as_u64().unwrap(), row["attempts"].as_u64().unwrap())
    };
    assert_eq!((passed("gold"), passed("noop")), ((5, 5), (0, 5)));
}

#[test]
fn suite_and_power_count_the_samples_of_a_paper_that_lists_only_regions() {
    let lab = lab();
    let manifest = lab.read("papers/plain/paper.toml");
    let is_function = |part: &&str| part.starts_with("[[function]]");
    let parts = manifest.split_inclusive("\n\n").filter(|part| !is_function(part)).collect::<String>();
    lab.write("papers/plain/paper.toml", &parts);
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&lab.ok(&[arguments, &["--json"]].concat()).stdout).unwrap()
    };
    let listed = json(&["list", "--family", "masked", "plain"])[0]["samples"].clone();
    assert_eq!(listed, serde_json::json!({"0": 1, "1": 3, "2": 2}), "region 0 contains region 1");
    let suite = json(&["suite", "-p", "plain"]);
    assert_eq!((&suite[0]["functions"], &suite[0]["samples"]), (&3.into(), &serde_json::json!([3, 2, 0, 0, 0])));
    std::fs::remove_dir_all(lab.path("papers/odd")).unwrap();
    assert_eq!(json(&["power", "--diff", "0.2", "-n", "2"])["rows"][0]["available"], 2);
}

#[test]
fn proposed_regions_are_pasted_into_the_manifest_as_they_are_printed() {
    let lab = Lab::of("measured", "bare", &["plain", "odd"]);
    let printed = lab.ok(&["regions", "plain", "--share", "0.3,0.6"]).stdout;
    assert!(printed.contains("\"while place < len(values):\""), "{printed}");
    lab.write("papers/plain/paper.toml", &format!("{}\n{printed}", lab.read("papers/plain/paper.toml")));
    let count = printed.matches("[[region]]").count();
    assert_eq!(samples(&lab, &["--units", "regions"]).len(), count);
    let tagged = "def f(x):\n    # <paper2code name=\"double\">\n    y = 2 * x\n    # </paper2code name=\"double\">\n    return y\n";
    lab.write("repos/plain/plain/extra.py", tagged);
    let tags = lab.ok(&["regions", "--tags", "plain"]).stdout;
    assert!(tags.contains("tag = \"double\"\n") && tags.contains("at = \"plain/extra.py\"\n"), "{tags}");
    lab.write("papers/plain/paper.toml", &format!("{}\n{tags}", lab.read("papers/plain/paper.toml")));
    assert_eq!(samples(&lab, &["--units", "regions"]).len(), count + 1);
}
