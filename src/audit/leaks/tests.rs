#![allow(clippy::float_cmp, reason = "0 and 1 are exact")]

use std::fs;
use std::process::Command;

use super::*;
use crate::suite::Suite;

/// The masked body in most tests.
const BODY: &str = r"    out = []
    for index in range(len(values)):
        first = max(0, index - width)
        window = values[first:index + width + 1]
        weights = [math.exp(-abs(index - first - place) / width) for place in range(len(window))]
        out.append(sum(weight * value for weight, value in zip(weights, window)) / sum(weights))
    return out
";

/// The code of `BODY` with other variable names.
const RENAMED: &str = r"    res = []
    for i in range(len(xs)):
        a = max(0, i - h)
        part = xs[a:i + h + 1]
        ks = [math.exp(-abs(i - a - j) / h) for j in range(len(part))]
        res.append(sum(k * x for k, x in zip(ks, part)) / sum(ks))
    return res
";

/// Code that is about as long as `BODY` but does something else.
const OTHER: &str = r#"    while values and values[-1] != width:
        head, *values = sorted(values, key=lambda item: (item % 7, -item))
        if head > 3 or not values:
            raise ValueError(f"{head} is too much for {width!r}")
        width -= head // 2
    return {"head": width, "tail": tuple(values)}
"#;

/// A suite of one paper, in a temporary folder.
struct LeakFixture {
    folder: tempfile::TempDir,
}

impl LeakFixture {
    fn new() -> Self {
        let lab = Self { folder: tempfile::tempdir().unwrap() };
        lab.write("envs/e/environment.yml", "name: e\ndependencies:\n  - python\n  - pip:\n      - numpy==2.2.6\n");
        lab.write(
            "papers/p/paper.md",
            "# Smoothing\n\nA window slides over the values, and each is replaced by a mean.\n",
        );
        lab.write(
            "papers/p/paper.toml",
            "title = 'T'\nauthors = ['A']\nyear = 2007\nurl = 'u'\nrepo = 'p'\nenv = 'e'\n\n\
             [[function]]\nat = 'pkg/core.py::smoothed'\ndescription = 'A weighted mean.'\n\n\
             [[experiment]]\nid = 'one'\ndescription = 'd'\ncommand = 'python -m pkg'\nresult = { json_line = 'stdout' }\n",
        );
        lab.write("repos/p/pkg/__init__.py", "");
        lab.write("repos/p/pkg/core.py", core("\"\"\"The smoothed values.\"\"\"", ""));
        lab
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn append(&self, path: &str, text: &str) {
        let old = fs::read_to_string(self.folder.path().join(path)).unwrap();
        self.write(path, old + text);
    }

    /// Runs a script in the repo.
    fn sh(&self, script: &str) {
        let repo = self.folder.path().join("repos/p");
        let ran = Command::new("sh").args(["-ec", script]).current_dir(repo).output().unwrap();
        assert!(ran.status.success(), "{script}\n{}", String::from_utf8_lossy(&ran.stderr));
    }

    fn loaded(&self) -> LoadedPaper {
        LoadedPaper::load(&Suite::open(self.folder.path()).unwrap(), "p").unwrap()
    }

    fn measure(&self) -> LeakReport {
        measure(&self.loaded(), None).unwrap()
    }

    /// Measures the function that most tests mask: returns the share of its body that also appears in another place,
    /// and the name of this place.
    fn leak(&self) -> (f64, String) {
        let leak = self.measure().functions.remove(0);
        (leak.containment, leak.place)
    }

    fn findings(&self) -> Vec<(FindingKind, String)> {
        let place = |finding: &LeakFinding| {
            let path = finding.error.place.as_ref().unwrap().0.clone();
            path.strip_prefix(self.folder.path()).unwrap().display().to_string()
        };
        self.measure().findings.iter().map(|finding| (finding.kind, place(finding))).collect()
    }
}

/// Returns the file that contains the masked function, with this docstring, followed by this code.
fn core(docstring: &str, more: &str) -> String {
    format!("import math\n\n\ndef smoothed(values, width):\n    {docstring}\n{BODY}\n\n{more}")
}

/// Puts a prefix before every line.
fn prefixed(prefix: &str, text: &str) -> String {
    text.split_inclusive('\n').flat_map(|line| [prefix, line]).collect()
}

#[test]
fn a_masked_body_is_not_reported_as_a_leak_of_itself() {
    let report = LeakFixture::new().measure();
    assert_eq!(report.functions[0].containment, 0.0);
    assert!(report.findings.is_empty() && report.pairs.is_empty());
}

/// A file, a function that puts text around some code, and the place where the code should be found.
type PlantedText<'a> = (&'a str, Box<dyn Fn(&str) -> String + 'a>, &'a str);

#[test]
fn a_copy_is_found_in_every_visible_place_and_other_code_is_not() {
    let json = |text: &str| serde_json::to_string(text).unwrap();
    let cell = |text: &str| {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        serde_json::to_string(&serde_json::json!({"cells": [{"cell_type": "code", "source": lines}]})).unwrap()
    };
    let html = |text: &str| text.replace('<', "&lt;").replace("for ", "<span class=\"k\">for</span> ");
    let plants: Vec<PlantedText<'_>> = vec![
        ("pkg/other.py", Box::new(|code| format!("x = 1\n\ndef copy(values, width):\n{code}")), "pkg/other.py::copy"),
        (
            "pkg/core.py",
            Box::new(|code| {
                let longer = prefixed("    ", code);
                core(
                    "pass",
                    &format!("class A:\n    def longer(self, values, width):\n{longer}        print(values)\n"),
                )
            }),
            "pkg/core.py::A.longer",
        ),
        (
            "pkg/core.py",
            Box::new(|code| core(&format!("\"\"\"As follows.\n\n{code}\n    \"\"\""), "")),
            "pkg/core.py::smoothed",
        ),
        ("pkg/core.py", Box::new(|code| core("pass", &format!("if width:\n{code}"))), "pkg/core.py:16"),
        ("pkg/old.py", Box::new(|code| prefixed("# ", code)), "pkg/old.py:1"),
        ("pkg/old.py", Box::new(|code| format!("x = 1\nOLD = '''\n{code}'''\n")), "pkg/old.py:3"),
        ("pkg/core.py.bak", Box::new(|code| core("pass", "").replace(BODY, code)), "pkg/core.py.bak:6"),
        ("README.md", Box::new(|code| format!("It isn't hard:\n\n```python\n{code}```\n")), "README.md:4"),
        ("README.md", Box::new(|code| format!("So:\n\n{}", prefixed(">>> ", code))), "README.md:3"),
        ("docs/code.txt", Box::new(|code| prefixed("12: ", code)), "docs/code.txt:1"),
        ("docs/core.html", Box::new(move |code| html(code)), "docs/core.html:1"),
        ("explore.ipynb", Box::new(cell), "explore.ipynb:1"),
        (
            "data/functions.jsonl",
            Box::new(move |code| format!("{{\"body\": {}}}\n", json(code))),
            "data/functions.jsonl:1",
        ),
        (
            "fix.patch",
            Box::new(|code| format!("@@ -1,2 +1,9 @@\n import math\n{}", prefixed("+", code))),
            "fix.patch:3",
        ),
        (
            "fix.diff",
            Box::new(|code| {
                let sides: String = code.split_inclusive('\n').flat_map(|line| ["-", line, "+    pass\n"]).collect();
                format!("@@ -1,9 +1,9 @@\n{sides}")
            }),
            "fix.diff:2",
        ),
        ("data/objects.pkl", Box::new(|code| format!("\0\u{1}\u{2}{code}\0\0")), "data/objects.pkl:1"),
        ("run", Box::new(|code| format!("#!/usr/bin/env python3\ndef main(values, width):\n{code}")), "run::main"),
    ];
    for (path, planted, place) in plants {
        let lab = LeakFixture::new();
        lab.write(&format!("repos/p/{path}"), planted(OTHER));
        let (containment, _) = lab.leak();
        assert!(containment < 0.2, "{path}: other code leaks {containment}");
        for (code, least) in [(BODY, 0.9), (RENAMED, 0.8)] {
            lab.write(&format!("repos/p/{path}"), planted(code));
            let (containment, found) = lab.leak();
            assert!(containment > least, "{path}: {containment} in `{found}`");
            assert_eq!(found, place, "{path}");
        }
    }
}

#[test]
fn a_copy_in_the_papers_text_or_in_a_text_of_the_manifest_is_found() {
    let lab = LeakFixture::new();
    lab.append("papers/p/paper.md", &format!("\n```\n{BODY}```\n"));
    assert_eq!(lab.leak(), (1.0, "paper.md:6".to_owned()));

    let lab = LeakFixture::new();
    lab.append(
        "papers/p/paper.toml",
        &format!("\n[[function]]\nat = 'pkg/core.py::more'\ndescription = '''\n{BODY}'''\n"),
    );
    lab.append(
        "repos/p/pkg/core.py",
        "def more():\n    return [print(value) for value in range(12, 34, 5) if value]\n",
    );
    let (containment, place) = lab.leak();
    assert_eq!((containment, place.as_str()), (1.0, "paper.toml, description of `pkg/core.py::more`:1"));

    let lab = LeakFixture::new();
    let manifest = fs::read_to_string(lab.folder.path().join("papers/p/paper.toml")).unwrap();
    lab.write("papers/p/paper.toml", manifest.replace("title = 'T'", &format!("title = '''\n{BODY}'''")));
    assert_eq!(lab.leak(), (1.0, "paper.toml, title:1".to_owned()));
}

#[test]
fn containment_is_measured_with_original_and_with_normalised_identifiers_and_the_larger_value_counts() {
    let lab = LeakFixture::new();
    lab.write("repos/p/pkg/other.py", format!("def copy(xs, h):\n{RENAMED}"));
    let leak = lab.measure().functions.remove(0);
    assert!(leak.kept < 0.2 && leak.normalised > 0.9 && leak.containment == leak.normalised, "{leak:?}");
}

#[test]
fn files_left_out_of_snapshots_are_not_visible_to_agents() {
    let lab = LeakFixture::new();
    for path in [".git/core.py", "pkg/__pycache__/core.cpython-313.pyc", "pkg/core.py.orig", "pkg/core.py~"] {
        lab.write(&format!("repos/p/{path}"), BODY);
    }
    assert_eq!(lab.leak().0, 0.0);
    assert_eq!(lab.findings(), []);
}

#[test]
fn functions_nested_in_a_masked_function_are_masked_too() {
    let lab = LeakFixture::new();
    let nested = format!(
        "def outer(values, width):\n    def inner(values, width):\n{}    return inner\n",
        BODY.replace("    ", "        ")
    );
    lab.write("repos/p/pkg/core.py", &nested);
    let manifest = fs::read_to_string(lab.folder.path().join("papers/p/paper.toml")).unwrap();
    lab.write("papers/p/paper.toml", manifest.replace("::smoothed", "::outer"));
    assert_eq!(lab.leak().0, 0.0);
    // If only the inner function is masked, a copy of its code in any other function is a leak. The outer function is
    // exempt, because it contains the masked code itself.
    lab.write("papers/p/paper.toml", manifest.replace("::smoothed", "::outer.inner"));
    assert_eq!(lab.leak().0, 0.0);
}

#[test]
fn two_maskable_functions_that_give_each_other_away_are_reported_as_a_pair() {
    let lab = LeakFixture::new();
    lab.append("repos/p/pkg/core.py", &format!("def again(xs, h):\n{RENAMED}"));
    let manifest = "\n[[function]]\nat = 'pkg/core.py::again'\ndescription = 'd'\n";
    lab.append("papers/p/paper.toml", manifest);
    let report = lab.measure();
    assert_eq!(report.pairs.len(), 1);
    let pair = &report.pairs[0];
    assert_eq!(pair.functions, (0, 1));
    assert!(pair.containment.0 > 0.9 && pair.containment.1 > 0.9, "{pair:?}");
    let errors: Vec<String> = report.errors().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(errors.join("\n"), @"functions `pkg/core.py::smoothed` and `pkg/core.py::again` give each other away: 100% of the first is in the second, 100% of the second in the first");

    let lab = LeakFixture::new();
    lab.append("repos/p/pkg/core.py", &format!("def again(values, width):\n{OTHER}"));
    lab.append("papers/p/paper.toml", manifest);
    assert!(lab.measure().pairs.is_empty());
}

#[test]
fn a_leaked_function_is_an_error_that_names_it_and_its_copy() {
    let lab = LeakFixture::new();
    lab.write("repos/p/pkg/other.py", format!("def copy(values, width):\n{BODY}"));
    let errors: Vec<String> = lab.measure().errors().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(errors.join("\n"), @"100% of function `pkg/core.py::smoothed` is in `pkg/other.py::copy`");
}

#[test]
fn compiled_code_is_found_by_name_and_by_content() {
    use FindingKind::Compiled;
    let lab = LeakFixture::new();
    lab.write("repos/p/pkg/_fast.cpython-313-x86_64-linux-gnu.so", "anything");
    lab.sh("cp /bin/true data.bin; python3 -c 'import py_compile; py_compile.compile(\"pkg/core.py\", \"pkg/core.cache\")'");
    let expected = ["data.bin", "pkg/_fast.cpython-313-x86_64-linux-gnu.so", "pkg/core.cache"];
    assert_eq!(lab.findings(), expected.map(|path| (Compiled, format!("repos/p/{path}"))));

    let lab = LeakFixture::new();
    lab.write("repos/p/figure.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01");
    lab.write("repos/p/data.bin", [0_u8; 64]);
    lab.write("repos/p/dos.txt", "ab\r\ncd\r\nef\r\ngh\r\nij\r\n");
    assert_eq!(lab.findings(), []);
}

#[test]
fn archives_with_code_are_found_and_archives_of_data_are_not() {
    use FindingKind::{Archive, Unread};
    let lab = LeakFixture::new();
    lab.sh(
        "python3 - <<'END'\n\
         import tarfile, zipfile, lzma\n\
         with zipfile.ZipFile('old.zip', 'w', zipfile.ZIP_DEFLATED) as z: z.write('pkg/__init__.py'); z.write('pkg/core.py')\n\
         with tarfile.open('old.tar', 'w') as t: t.add('pkg')\n\
         with tarfile.open('old.tgz', 'w:gz') as t: t.add('pkg')\n\
         with tarfile.open('old.tar.bz2', 'w:bz2') as t: t.add('pkg')\n\
         open('old.py.xz', 'wb').write(lzma.compress(b'x = 1'))\n\
         open('table.csv.xz', 'wb').write(lzma.compress(b'1,2'))\n\
         END",
    );
    let expected = [
        (Archive, "old.py.xz"),
        (Archive, "old.tar"),
        (Archive, "old.tar.bz2"),
        (Archive, "old.tgz"),
        (Archive, "old.zip"),
        (Unread, "table.csv.xz"),
    ];
    assert_eq!(lab.findings(), expected.map(|(kind, path)| (kind, format!("repos/p/{path}"))));

    let lab = LeakFixture::new();
    lab.sh("echo 1,2 >table.csv; python3 - <<'END'\n\
         import tarfile, zipfile, gzip\n\
         with zipfile.ZipFile('data.npz', 'w', zipfile.ZIP_DEFLATED) as z: z.write('table.csv', 'x.npy')\n\
         with tarfile.open('data.tgz', 'w:gz') as t: t.add('table.csv')\n\
         gzip.open('table.csv.gz', 'w').write(b'1,2\\n' * 100)\n\
         END");
    assert_eq!(lab.findings(), []);
}

#[test]
fn code_in_large_archives_under_long_names_and_in_archives_of_archives_is_found() {
    let lab = LeakFixture::new();
    lab.sh("python3 - <<'END'\n\
         import gzip, io, tarfile, zipfile\n\
         zeros = bytes(17 << 20)\n\
         with zipfile.ZipFile('a-large.zip', 'w', zipfile.ZIP_STORED) as z: z.writestr('zeros', zeros); z.write('pkg/core.py')\n\
         with tarfile.open('b-late.tar.gz', 'w:gz') as t:\n\
         \x20 about = tarfile.TarInfo('zeros'); about.size = len(zeros); t.addfile(about, io.BytesIO(zeros)); t.add('pkg')\n\
         with tarfile.open('c-long.tar', 'w', format=tarfile.GNU_FORMAT) as t: t.add('pkg/core.py', 'd' * 120 + '/core.py')\n\
         with tarfile.open('d-old', 'w', format=tarfile.USTAR_FORMAT) as t: t.add('pkg/core.py', 'CORE.PY')\n\
         with zipfile.ZipFile('e-nested.zip', 'w') as z: z.writestr('dist/pkg-1.0-py3-none-any.whl', b'PK')\n\
         open('f-damaged.zip', 'wb').write(open('e-nested.zip', 'rb').read()[:40])\n\
         gzip.open('g.zip.gz', 'wb').write(open('e-nested.zip', 'rb').read())\n\
         open('h-program', 'wb').write(b'#!/usr/bin/env python3\\n' + open('a-large.zip', 'rb').read())\n\
         open('i-data', 'wb').write(b'no archive, but PK\\x05\\x06')\n\
         END");
    let found = lab.findings();
    for (kind, names) in [
        (
            FindingKind::Archive,
            &["a-large.zip", "b-late.tar.gz", "c-long.tar", "d-old", "e-nested.zip", "h-program"][..],
        ),
        (FindingKind::Unread, &["f-damaged.zip", "g.zip.gz"]),
    ] {
        for name in names {
            assert!(found.contains(&(kind, format!("repos/p/{name}"))), "{name}: {found:?}");
        }
    }
    assert_eq!(found.iter().filter(|(kind, _)| *kind != FindingKind::Unread).count(), 6, "{found:?}");
}

#[test]
fn a_packed_copy_is_unpacked_and_compared() {
    let lab = LeakFixture::new();
    lab.sh("gzip -k pkg/core.py");
    assert_eq!(lab.leak(), (1.0, "pkg/core.py.gz::smoothed".to_owned()));
}

#[test]
fn files_and_folders_with_git_objects_are_found_whatever_their_names() {
    use FindingKind::GitObjects;
    let lab = LeakFixture::new();
    lab.sh(
        "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a GIT_CONFIG_GLOBAL=/dev/null\n\
         git init -q; git add .; git commit -qm a; git bundle create -q history.bundle HEAD; git clone -q --bare . mirror\n\
         git repack -qad; cp .git/objects/pack/*.pack saved; rm -rf mirror/objects/pack",
    );
    let expected = ["mirror", "history.bundle", "saved"];
    assert_eq!(lab.findings(), expected.map(|path| (GitObjects, format!("repos/p/{path}"))));

    let lab = LeakFixture::new();
    lab.write("repos/p/objects/refs/HEAD", "a folder of other objects");
    lab.write("repos/p/PACKING.md", "PACK your things");
    assert_eq!(lab.findings(), []);
}

#[test]
fn the_papers_own_package_in_the_environment_is_found() {
    use FindingKind::Installed;
    let lab = LeakFixture::new();
    lab.append("envs/e/environment.yml", "      - PKG[extra]>=1\n");
    lab.write("envs/e/venv.lock", "[[target.package]]\nname = \"pkg\"\nversion = \"1\"\n");
    assert_eq!(lab.findings(), ["environment.yml", "venv.lock"].map(|file| (Installed, format!("envs/e/{file}"))));

    let lab = LeakFixture::new();
    lab.append("envs/e/environment.yml", "      - pkgutil-more==1\n");
    assert_eq!(lab.findings(), []);

    let site = lab.folder.path().join("venv/lib/python3.13/site-packages");
    fs::create_dir_all(site.join("numpy")).unwrap();
    fs::create_dir_all(site.join("pkg_more-1.0.dist-info")).unwrap();
    assert!(installed(&lab.loaded(), &lab.folder.path().join("venv")).is_empty());
    for name in ["pkg", "pkg-1.0.dist-info", "__editable__.pkg-1.0.pth"] {
        fs::create_dir_all(site.join(name)).unwrap();
    }
    assert_eq!(installed(&lab.loaded(), &lab.folder.path().join("venv")).len(), 3);
}

#[test]
fn a_copy_in_the_environment_is_found_under_any_name_by_its_content() {
    let lab = LeakFixture::new();
    let folder = "venv/lib/python3.13/site-packages/elsewhere";
    lab.write(&format!("{folder}/other.py"), format!("def smoothed(values, width):\n{OTHER}"));
    assert!(installed(&lab.loaded(), &lab.folder.path().join("venv")).is_empty());
    lab.write(&format!("{folder}/deep/copy.py"), format!("def smoothed(xs, h):\n{RENAMED}"));
    let found = installed(&lab.loaded(), &lab.folder.path().join("venv"));
    assert_eq!(found.len(), 1);
    assert!(found[0].error.to_string().contains("deep/copy.py"), "{}", found[0].error);
}

#[test]
fn a_loop_of_two_lines_is_not_reported_as_leaked_by_a_similar_loop() {
    let lab = LeakFixture::new();
    let looped =
        |name: &str| format!("\n\ndef {name}(out, xs):\n    for i in range(len(xs)):\n        out[i] = f(xs[i])\n");
    lab.append("repos/p/pkg/core.py", &(looped("one") + &looped("other")));
    lab.append("papers/p/paper.toml", "\n[[function]]\nat = 'pkg/core.py::one'\ndescription = 'd'\n");
    let leak = lab.measure().functions.remove(1);
    assert_eq!((leak.at.as_str(), leak.containment), ("pkg/core.py::one", 0.0));
}

#[test]
fn gold_values_are_found_in_every_text() {
    let gold = r#"{"format": 1, "recorded": "2026-11-21T00:00:00Z", "repo": "", "sandbox": "none",
        "env": {"backend": "venv", "digest": "", "python": "3.13.0"}, "results": {"curtailed": {"one": {
        "command": "python -m pkg", "result": {"loss": 0.873412345}, "seconds": [0.1], "spread": 0.0}}}}"#;
    for (path, text) in [
        ("repos/p/README.md", "It gets to 0.873.\n"),
        ("repos/p/pkg/notes.py", "# gave 0.8734 before\n"),
        ("repos/p/data/before.json", "{\"loss\": 0.87341234500001}\n"),
        ("repos/p/log.csv", "1,0.8734,2\n"),
        ("repos/p/run.ipynb", "{\"outputs\": [\"loss 0.873\"]}\n"),
    ] {
        let lab = LeakFixture::new();
        lab.write("papers/p/gold.json", gold);
        lab.write(path, text.replace("0.873", "0.871"));
        assert_eq!(lab.findings(), [], "{path}");
        lab.write(path, text);
        assert_eq!(lab.findings(), [(FindingKind::GoldValue, path.to_owned())]);
    }
    let lab = LeakFixture::new();
    lab.write("papers/p/gold.json", gold);
    lab.sh("echo ours,0.8734 >table.csv; tar czf data.tgz table.csv; tar cf data.tar table.csv; rm table.csv");
    let expected = ["data.tar", "data.tgz"].map(|path| (FindingKind::GoldValue, format!("repos/p/{path}")));
    assert_eq!(lab.findings(), expected);
    let lab = LeakFixture::new();
    lab.write("papers/p/gold.json", gold);
    lab.append("papers/p/paper.md", "The loss falls to 87.3%.\n");
    assert_eq!(lab.findings(), [(FindingKind::GoldValue, "papers/p/paper.md".to_owned())]);
}

#[test]
fn a_file_that_is_too_long_to_be_read_is_named() {
    let lab = LeakFixture::new();
    let file = fs::File::create(lab.folder.path().join("repos/p/data.bin")).unwrap();
    file.set_len(LARGEST + 1).unwrap();
    assert_eq!(lab.findings(), [(FindingKind::Unread, "repos/p/data.bin".to_owned())]);
    file.set_len(LARGEST / 4).unwrap();
    assert_eq!(lab.findings(), []);
}

#[test]
fn the_papers_of_this_suite_contain_no_leaks() {
    let suite = Suite::open(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    for id in suite.ids().unwrap() {
        let report = measure(&LoadedPaper::load(&suite, &id).unwrap(), None).unwrap();
        let errors: Vec<String> = report.errors().iter().map(ToString::to_string).collect();
        assert_eq!(errors, [""; 0], "{id}");
    }
}

#[test]
fn code_beside_a_long_table_of_numbers_is_found_at_its_line() {
    let lab = LeakFixture::new();
    lab.write("repos/p/log.txt", format!("{}{BODY}{}", "1.5e+00, 2\n".repeat(100), "3,4;".repeat(2000)));
    assert_eq!(lab.leak(), (1.0, "log.txt:101".to_owned()));
    lab.write("repos/p/log.txt", "1.5e+00, 2\n".repeat(100));
    assert_eq!(lab.leak().0, 0.0);
}
