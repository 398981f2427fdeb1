//! `factory`: suites made from the tests' own packages, which are folders or come from a package index that the tests
//! run on this machine.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::support::Lab;

const MEANS: &str = r#""""Means of lists."""


def mean(values):
    """The arithmetic mean of a list of numbers; 0 if it is empty.

    >>> mean([1, 2])
    1.5
    """
    total = 0.0
    for value in values:
        total += value
    if not values:
        return 0.0
    return total / len(values)


def clip(values, low, high):
    found = []
    for value in values:
        if value < low:
            value = low
        elif value > high:
            value = high
        found.append(value)
    return found


def unneeded(values, start):
    total = start()
    for value in values:
        total = total * value + 1
    return total - 1


def quiet(values):
    """Hides faults."""
    try:
        unneeded(values, lambda: 1)
    except Exception:
        pass
"#;

const TESTS: &str = "import pytest\nfrom means import clip, mean, quiet\n\n\n\
    @pytest.mark.parametrize('values, expected', [([1, 2, 3], 2.0), ([], 0.0), ([4.5], 4.5), ([1, 2, 4, 9], 4.0)])\n\
    def test_mean(values, expected):\n    assert mean(values) == expected\n\n\n\
    def test_clip():\n    assert clip([1, 5, 9], 2, 8) == [2, 5, 8]\n    assert clip([2, 8], 2, 8) == [2, 8]\n\n\n\
    @pytest.mark.parametrize('first', range(12))\ndef test_many(first):\n    assert mean([first, 2, 4]) == (first + 6) / 3\n    \
    assert clip([first], 3, 5) == [min(max(first, 3), 5)]\n\n\n\
    class TestEmpty:\n    def test_clip(self):\n        assert clip([], 0, 1) == []\n\n\n\
    def test_nothing_is_checked():\n    quiet([1])\n";

/// Functions whose tests need a detail that must be stated outside of the body: `shares` a text that the README states;
/// `scaled` a text, and `metres` a number, that only examples of calls state. `faded` needs a fraction that only
/// another file contains, and `joined` an exception that nothing states; both get no examples, because they take
/// functions that use variables of a test. The condition in `middle` has a second part that no test tries. The opposite
/// of `Range.__eq__` is in the same class, and the tests of `Range.widened` need a type that nothing states.
const SHARES: &str = r#"

def shares(values):
    """Shares of the sum; a ValueError without values."""
    if not values:
        raise ValueError("there are no values to share")
    total = sum(values)
    return [value / total for value in values]


def scaled(values, by):
    """Values times a factor; a ValueError if it is below 0."""
    if by < 0:
        raise ValueError("a factor may not be negative here")
    found = []
    for value in values:
        found.append(value * by)
    return found


def metres(inches):
    """Metres of inches."""
    found = []
    for value in inches:
        found.append(round(value * 0.0254, 9))
    return found


def faded(values, rounded):
    """Values that fade."""
    found = []
    for value in values:
        found.append(rounded(value * 0.7))
    return found


def joined(values, start):
    """One number of several digits."""
    found = start()
    if len(values) > 3:
        raise OverflowError
    for value in values:
        found = 10 * found + value
    return found


def least(values, is_less):
    """The least value."""
    found = None
    for value in values:
        if found is None or is_less(value, found):
            found = value
    return found


def middle(values):
    if not values or values[0] is None:
        return 0
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


class Range:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def __eq__(self, other):
        if isinstance(other, Range):
            return self.low == other.low and self.high == other.high
        return False

    def __ne__(self, other):
        if isinstance(other, Range):
            return self.low != other.low or self.high != other.high
        return True

    def widened(self, by):
        """The range, widened at both ends; a TypeError if that is impossible."""
        if not isinstance(by, int):
            raise TypeError
        low = self.low - by
        return Range(low, self.high + 2 * by)
"#;

const TESTS_OF_SHARES: &str = "\n\nfrom means import faded, joined, least, metres, middle, Range, scaled, shares\n\n\n\
    def test_shares():\n    assert shares([1, 3, 4]) == [0.125, 0.375, 0.5]\n\n\n\
    @pytest.mark.parametrize('first', range(12))\n\
    def test_many_shares(first):\n    assert shares([first, 16 - first]) == [first / 16, 1 - first / 16]\n\n\n\
    def test_no_shares():\n    with pytest.raises(ValueError, match='there are no values'):\n        shares([])\n\n\n\
    def test_scaled():\n    assert scaled([1, 2, 0], 3) == [3, 6, 0]\n    assert scaled([5], 0) == [0]\n\n\n\
    def test_not_scaled():\n    with pytest.raises(ValueError, match='a factor may not be'):\n        scaled([1], -1)\n\n\n\
    def test_metres():\n    assert metres([1, 10]) == [0.0254, 0.254]\n\n\n\
    def test_least():\n    sign = 1\n    is_less = lambda one, other: sign * one < sign * other\n    assert least([3, 1, 2], is_less) == 1\n    assert least([], is_less) is None\n\n\n\
    def test_faded():\n    digits = 9\n    assert faded([1, 10], lambda value: round(value, digits)) == [0.7, 7]\n\n\n\
    def test_joined():\n    zero = 0\n    start = lambda: zero\n    assert joined([1, 2], start) == 12\n    with pytest.raises(OverflowError):\n        joined([1, 2, 3, 4], start)\n\n\n\
    @pytest.mark.parametrize('values, expected', [([], 0), ([3], 3), ([2, 9, 4], 4), ([7, 5], 7)])\n\
    def test_middle(values, expected):\n    assert middle(values) == expected\n\n\n\
    @pytest.mark.parametrize('low', range(12))\n\
    def test_ranges(low):\n    assert Range(low, 5) == Range(low, 5)\n    assert Range(low, 5) != Range(low, 6) and not Range(low, 5) == low\n    \
    assert Range(low, 5).widened(low) == Range(0, 5 + 2 * low)\n\n\n\
    def test_widened():\n    with pytest.raises(TypeError):\n        Range(1, 2).widened(1.5)\n\n\n\
    def test_large():\n    with open(__file__.replace('test_means.py', 'large.txt')) as file:\n        assert mean([len(file.read())]) == 5e6\n";

/// Files of a package in a `src` layout, by their path.
fn means(name: &str) -> BTreeMap<String, String> {
    let toml = format!("[project]\nname = '{name}'\nversion = '1.5'\ndescription = 'Means of lists.'\n");
    let info = format!(
        "Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\nSummary: Means of lists.\nLicense: MIT\nAuthor: A. Person\n\n# README\n"
    );
    let files = [
        ("pyproject.toml", toml.as_str()),
        ("PKG-INFO", &info),
        ("README.md", "# Means\n\nUse `mean`.\n\n>>> mean([7])\n7.0\n"),
        ("src/means/__init__.py", MEANS),
        ("tests/test_means.py", TESTS),
    ];
    files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect()
}

fn write(lab: &Lab, folder: &str, files: &BTreeMap<String, String>) {
    for (path, text) in files {
        lab.write(&format!("{folder}/{path}"), text);
    }
}

/// Packs files as an sdist.
fn sdist(top: &str, files: &BTreeMap<String, String>) -> Vec<u8> {
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append_data(&mut header, format!("{top}/{path}"), text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// Starts an index on this machine, which serves these pages and files by their path. Of a file whose name contains
/// `half`, it sends only the first half.
fn index(files: BTreeMap<String, Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let files = Arc::new(files);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let files = Arc::clone(&files);
            std::thread::spawn(move || {
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let request = lines.next().unwrap_or_default();
                let _ = lines.take_while(|line| !line.is_empty()).count();
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let found = files.get(&path);
                let status = if found.is_some() { "200 OK" } else { "404 Not Found" };
                let body = found.cloned().unwrap_or_default();
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let sent =
                    if path.contains("half.tar") || path.contains("half-1") { body.len() / 2 } else { body.len() };
                let mut stream = &stream;
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body[..sent]));
            });
        }
    });
    address
}

fn list(lab: &Lab, suite: &str) -> Value {
    serde_json::from_str(&lab.read(&format!("{suite}/factory.json"))).unwrap()
}

fn entry<'a>(list: &'a Value, package: &str) -> &'a Value {
    let all = list["packages"].as_array().unwrap();
    all.iter().find(|entry| entry["package"] == package).unwrap()
}

fn same(one: &Path, other: &Path) -> bool {
    let files = |root: &Path| -> BTreeMap<String, Vec<u8>> {
        let walk = walkdir::WalkDir::new(root).into_iter().flatten().filter(|entry| entry.file_type().is_file());
        walk.map(|entry| {
            let path = entry.path().strip_prefix(root).unwrap().display().to_string();
            (path, std::fs::read(entry.path()).unwrap())
        })
        .collect()
    };
    files(one) == files(other)
}

#[test]
fn the_factory_makes_a_reproducible_suite_that_gold_passes_and_noop_fails_from_a_folder() {
    let lab = Lab::bare();
    let mut files = means("means-of-lists");
    for (path, more) in [
        ("src/means/__init__.py", SHARES),
        ("tests/test_means.py", TESTS_OF_SHARES),
        ("README.md", "\nWithout values, `shares` says: there are no values to share.\n"),
    ] {
        files.get_mut(path).unwrap().push_str(more);
    }
    files.insert("src/means/limits.py".to_owned(), "LIMITS = 0.7, 24\n".to_owned());
    // The runner of the tests keeps files in memory, but copies files as large as this one from the disk. This file
    // must be kept in memory all the same, because the runner removes it from the disk together with the tests.
    files.insert("tests/large.txt".to_owned(), "x".repeat(5_000_000));
    write(&lab, "package", &files);
    lab.ok(&["factory", "package", "-o", "tasks"]);
    let made = list(&lab, "tasks");
    let entry = entry(&made, "package");
    let functions: Vec<&str> =
        entry["measured"]["functions"].as_array().unwrap().iter().map(|one| one["at"].as_str().unwrap()).collect();
    let kept = ["mean", "clip", "shares", "scaled", "metres"].map(|name| format!("src/means/__init__.py::{name}"));
    assert_eq!(functions, kept);
    let dropped =
        &entry["funnel"]["dropped"]["its tests need a text, number, exception or type that only its body states"];
    let mut dropped: Vec<&str> = dropped.as_array().unwrap().iter().map(|at| at.as_str().unwrap()).collect();
    dropped.sort_unstable();
    assert_eq!(dropped, ["Range.widened", "faded", "joined"].map(|name| format!("src/means/__init__.py::{name}")));
    let with_opposites = &entry["funnel"]["dropped"]["the opposite of its body is in the same file"];
    let expected = ["src/means/__init__.py::Range.__eq__", "src/means/__init__.py::Range.__ne__"];
    assert_eq!(with_opposites, &serde_json::json!(expected));
    let untried = &entry["funnel"]["dropped"]["its tests do not try every case of its body"];
    assert_eq!(untried, &serde_json::json!(["src/means/__init__.py::middle", "src/means/__init__.py::quiet"]));
    let hardly_called = &entry["funnel"]["dropped"]["its tests call it with too few different arguments"];
    assert_eq!(hardly_called, &serde_json::json!(["src/means/__init__.py::least", "src/means/__init__.py::unneeded"]));
    assert_eq!(
        (&entry["name"], &entry["version"], &entry["licence"]),
        (&"means-of-lists".into(), &"1.5".into(), &"MIT".into())
    );
    assert_eq!((&entry["funnel"]["tests"], &entry["funnel"]["tests_kept"]), (&57.into(), &57.into()));
    // Gold is recorded with three drawings of altered tests, and the guarded runs of verification draw one of them.
    assert_eq!(entry["measured"]["plan"]["drawings"].as_array().unwrap().len(), 3);
    // `least` gets no added tests and no examples, because its argument, which uses a variable of a test, cannot be written
    // into another test.
    let added = entry["measured"]["added"].as_object().unwrap();
    assert_eq!(added.keys().collect::<Vec<_>>(), ["tests/test_autoexperiment_inputs_1.py"]);
    let added = added.values().next().unwrap().as_str().unwrap();
    assert!(added.contains("'clip'") && !added.contains("'least'") && !added.contains("'unneeded'"), "{added}");
    assert_eq!(entry["funnel"]["tests_added"], added.matches("\ndef test_").count());
    // The examples in the text and in the code do not show the results that they would print.
    let text = lab.read("tasks/papers/means-of-lists/paper.md");
    assert!(text.contains(">>> mean([7])") && !text.contains("7.0"), "{text}");
    assert!(!lab.read("tasks/repos/means-of-lists/src/means/__init__.py").contains("\n    1.5\n"));
    let manifest = lab.read("tasks/papers/means-of-lists/paper.toml");
    assert!(
        manifest.contains("\"tests/test_means.py\"")
            && manifest.contains("\"tests/test_autoexperiment_inputs_")
            && manifest.contains("authors = [\"A. Person\"]"),
        "{manifest}"
    );
    let scaled = &entry["measured"]["functions"][3]["description"].as_str().unwrap();
    assert!(
        scaled.starts_with("Values times a factor; a ValueError if it is below 0.\n\nExamples:\n    scaled(["),
        "{scaled}"
    );
    assert!(scaled.contains(" raises ValueError('a factor may not be negative here')"), "{scaled}");
    lab.ok(&["check", "--suite", "tasks"]);
    lab.ok(&["run", "--suite", "tasks", "-n", "1,2", "--agent", "gold,noop", "--name", "r"]);
    for record in lab.records("r") {
        assert_eq!(record["pass"], record["agent"] == "gold", "{record:#}");
    }
    // If the same command runs again, it has nothing left to do.
    let again = lab.ok(&["factory", "package", "-o", "tasks"]);
    assert!(!again.stderr.contains("running the tests"), "{}", again.stderr);
    assert_eq!(list(&lab, "tasks"), made);
    lab.ok(&["factory", "--from", "tasks/factory.json", "-o", "again"]);
    assert!(same(&lab.path("tasks"), &lab.path("again")));
    // If a file differs from the list, the suite gets no files of the package. A repeat with the right list continues.
    let mut changed = made.clone();
    changed["packages"][0]["digests"]["papers/means-of-lists/paper.md"] = "0".into();
    lab.write("changed.json", &changed.to_string());
    let error = lab.fails(3, &["factory", "--from", "changed.json", "-o", "part"]);
    assert!(error.contains("1 of its files differ from those in the list"), "{error}");
    assert!(!lab.path("part/papers/means-of-lists").exists());
    assert!(list(&lab, "part")["packages"].as_array().unwrap().is_empty());
    lab.ok(&["factory", "--from", "tasks/factory.json", "-o", "part"]);
    assert!(same(&lab.path("tasks"), &lab.path("part")));
    // A paper that the user has made stays as it is, although the suite has a list of the factory.
    let mut empty = made.clone();
    empty["packages"] = serde_json::json!([]);
    lab.write("own/factory.json", &empty.to_string());
    lab.write("own/papers/means-of-lists/paper.md", "mine");
    let error = lab.fails(2, &["factory", "--from", "tasks/factory.json", "-o", "own"]);
    assert!(error.contains("there is a paper `means-of-lists` already"), "{error}");
    assert_eq!(lab.read("own/papers/means-of-lists/paper.md"), "mine");
    // If the sources change, the suite cannot be made from the list any more.
    lab.edit("package/src/means/__init__.py", "total = start()\n", "total = start() + 1\n");
    let error = lab.fails(3, &["factory", "--from", "tasks/factory.json", "-o", "other"]);
    assert!(error.contains("the list was made from another file of this version"), "{error}");
    let error = lab.fails(2, &["factory", "package", "-o", "tasks", "--mutants", "3"]);
    assert!(error.contains("made with other settings"), "{error}");
}

#[test]
fn factory_reports_a_packages_fault_in_one_line_and_continues_with_the_other_packages() {
    let lab = Lab::bare();
    let good = means("autoexperiment-means");
    let mut hostile = good.clone();
    hostile.insert(
        "tests/test_hostile.py".to_owned(),
        "import os, shutil, time\nfrom means import mean\n\n\ndef test_hangs():\n    while True:\n        mean([1])\n\n\n\
         def test_forks():\n    for _ in range(200):\n        if os.fork() == 0:\n            time.sleep(60)\n            os._exit(0)\n\n\n\
         def test_ends():\n    os._exit(0)\n\n\n\
         def test_deletes():\n    shutil.rmtree(os.path.dirname(__file__), ignore_errors=True)\n    shutil.rmtree('src', ignore_errors=True)\n"
            .to_owned(),
    );
    write(&lab, "hostile", &hostile);
    let mut failing = good.clone();
    failing.insert("tests/test_means.py".to_owned(), "def test_fails():\n    assert 1 == 2\n".to_owned());
    write(&lab, "failing", &failing);
    let mut untested = good.clone();
    untested.remove("tests/test_means.py");
    write(&lab, "untested", &untested);
    lab.write("empty/README", "nothing");
    let archive = sdist("autoexperiment-means-1.5", &good);
    let page = |name: &str, extra: &str| {
        format!("<a {extra} href=\"../../files/{name}-1.5.tar.gz\">{name}-1.5.tar.gz</a>").into_bytes()
    };
    let names = ["autoexperiment-means", "autoexperiment-yanked", "autoexperiment-half"];
    let mut files: BTreeMap<String, Vec<u8>> =
        names.iter().map(|name| (format!("/files/{name}-1.5.tar.gz"), archive.clone())).collect();
    for name in names {
        let extra = if name.ends_with("yanked") { "data-yanked=\"broken\"" } else { "" };
        files.insert(format!("/simple/{name}/"), page(name, extra));
    }
    // The archive of this package has no tests, and its home page is dead. That is the same the next time.
    let mut without_tests = untested.clone();
    let info = without_tests.get_mut("PKG-INFO").unwrap();
    *info = info.replace("License: MIT", "Home-page: https://127.0.0.1:1/a/b");
    let archive = sdist("autoexperiment-dead-1.5", &without_tests);
    files.insert("/files/autoexperiment-dead-1.5.tar.gz".to_owned(), archive);
    files.insert("/simple/autoexperiment-dead/".to_owned(), page("autoexperiment-dead", ""));
    let address = index(files);
    let packages = [
        "hostile",
        "failing",
        "untested",
        "empty",
        "autoexperiment-means",
        "autoexperiment-yanked",
        "autoexperiment-half",
        "autoexperiment-dead",
        "autoexperiment-nowhere",
        "a b",
    ];
    lab.write("packages.txt", &packages.join("\n"));
    let ran = lab
        .command(&["factory", "packages.txt", "-o", "tasks", "--test-seconds", "2", "--mutants", "5", "-j", "2"])
        .env("PIP_EXTRA_INDEX_URL", format!("http://{address}/simple"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{stderr}");
    for line in [
        "failing: no tasks: none of its tests passes: failed",
        "untested: no tasks: its sources have no tests",
        "empty: no tasks: `empty` has no importable package",
        "autoexperiment-yanked: no tasks: `autoexperiment-yanked` has only yanked source archives",
        "autoexperiment-half: no tasks: the package index does not answer: ",
        "autoexperiment-dead: no tasks: its sources have no tests, and ",
        "autoexperiment-nowhere: no tasks: the package index has no `autoexperiment-nowhere`",
        "a b: no tasks: `a b` is not a package",
    ] {
        assert!(stderr.lines().any(|said| said.starts_with(line)), "{line}\n{stderr}");
    }
    let made = list(&lab, "tasks");
    // The index did not send one of the packages completely. The list has no entry for this package, so that the next
    // command tries to get it again.
    assert_eq!(made["packages"].as_array().unwrap().len(), packages.len() - 1);
    // A test that deletes its own files passes, because each test runs on its own copy of the files. A test that leaves
    // 200 processes behind also passes if the machine is fast enough.
    for (package, tests) in [("hostile", 20..=21), ("autoexperiment-means", 19..=19)] {
        let entry = entry(&made, package);
        assert!(entry["funnel"]["kept"].as_u64().unwrap() >= 1, "{entry:#}");
        let kept = entry["funnel"]["tests_kept"].as_u64().unwrap();
        assert!(tests.contains(&kept), "{:#}", entry["funnel"]);
    }
    // No calls of its functions could be tried, so `clip`, which has no docstring, has no examples either.
    let unexplained = &entry(&made, "hostile")["funnel"]["dropped"]["nothing but its signature says what it does"];
    assert_eq!(unexplained[0], "src/means/__init__.py::clip");
    assert_eq!(entry(&made, "autoexperiment-means")["source"]["package"], "autoexperiment-means==1.5");
    assert!(lab.read("tasks/factory.html").contains("its sources have no tests"));
    let error = lab.fails(3, &["factory", "untested", "-o", "nothing"]);
    assert!(error.contains("no package gave tasks"), "{error}");
}

#[test]
fn packages_that_need_their_tests_or_may_hold_their_code_elsewhere_are_refused_before_gold_is_recorded() {
    let lab = Lab::bare();
    let mut needing = means("needing-means");
    let tests = needing.remove("tests/test_means.py").unwrap();
    needing.insert("src/means/tests/test_means.py".to_owned(), tests);
    needing.insert("src/means/tests/__init__.py".to_owned(), String::new());
    needing.insert("src/means/tests/runner.py".to_owned(), "def run():\n    return 0\n".to_owned());
    needing.get_mut("src/means/__init__.py").unwrap().push_str("\n\nfrom .tests.runner import run\n");
    write(&lab, "needing", &needing);
    let mut packed = means("packed-means");
    packed.insert("history.bundle".to_owned(), "# v2 git bundle\n".to_owned());
    write(&lab, "packed", &packed);
    let error = lab.fails(3, &["factory", "needing", "packed", "-o", "tasks"]);
    for line in [
        "needing: no tasks: `means` needs files of its tests, which are hidden from agents: ModuleNotFoundError: ",
        "packed: no tasks: agents would get objects of git, which may hold masked functions (`history.bundle`)",
    ] {
        assert!(error.lines().any(|said| said.starts_with(line)), "{line}\n{error}");
    }
    let made = list(&lab, "tasks");
    assert!(["needing", "packed"].iter().all(|package| entry(&made, package)["stages"]["gold"].is_null()), "{made:#}");
}

#[test]
fn a_refreshed_suite_dates_new_functions_and_the_option_after_draws_only_functions_after_a_date() {
    let lab = Lab::bare();
    let name = "autoexperiment-means";
    let old = means(name);
    let mut new = old.clone();
    let fresh = "\n\ndef spread(values):\n    \"\"\"The sum of the squares of the distances to the first value.\"\"\"\n    total = 0\n\
                 \x20   for value in values:\n        total += (value - values[0]) ** 2\n    return total\n";
    let tests = "\n\ndef test_spread():\n    from means import spread\n\n    assert spread([3, 1, 7, 2]) == 21\n\
                 \x20   assert spread([5]) == 0\n    assert spread([-4, -9]) == 25\n    for last in range(9):\n        assert spread([1, last]) == (last - 1) ** 2\n";
    new.insert("src/means/__init__.py".to_owned(), format!("{MEANS}{fresh}"));
    new.insert("tests/test_means.py".to_owned(), format!("{TESTS}{tests}"));
    for text in new.values_mut() {
        *text = text.replace("1.5'", "2.0'").replace("Version: 1.5", "Version: 2.0");
    }
    let page = |versions: &[(&str, &str)]| {
        let files = versions.iter().map(|(version, date)| {
            format!("{{\"filename\": \"{name}-{version}.tar.gz\", \"url\": \"../../files/{name}-{version}.tar.gz\", \"hashes\": {{}}, \"upload-time\": \"{date}T10:00:00Z\"}}")
        });
        format!("{{\"meta\": {{\"api-version\": \"1.1\"}}, \"files\": [{}]}}", files.collect::<Vec<_>>().join(", "))
            .into_bytes()
    };
    let archives = BTreeMap::from([
        (format!("/files/{name}-1.5.tar.gz"), sdist(&format!("{name}-1.5"), &old)),
        (format!("/files/{name}-2.0.tar.gz"), sdist(&format!("{name}-2.0"), &new)),
    ]);
    let serve = |versions: &[(&str, &str)]| {
        let mut files = archives.clone();
        files.insert(format!("/simple/{name}/"), page(versions));
        format!("http://{}/simple", index(files))
    };
    let first = serve(&[("1.5", "2025-03-01")]);
    let factory = |address: &str, arguments: &[&str]| {
        let ran = lab.command(arguments).env("PIP_EXTRA_INDEX_URL", address).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let (code, told) = factory(&first, &["factory", name, "-o", "old", "--mutants", "5"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(lab.read(&format!("old/papers/{name}/paper.toml")).contains("published = \"2025-03-01\""));
    // The index has no newer version of the package yet.
    let (code, told) = factory(&first, &["factory", "refresh", "old/factory.json", "-o", "none"]);
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("1.5 is the newest version") && told.contains("has a newer version"), "{told}");
    let both = serve(&[("1.5", "2025-03-01"), ("2.0", "2026-07-02")]);
    let (code, told) = factory(&both, &["factory", "refresh", "old/factory.json", "-o", "new"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("(1 not in autoexperiment-means==1.5)"), "{told}");
    let made = list(&lab, "new");
    let functions = entry(&made, &format!("{name}==2.0"))["measured"]["functions"].clone();
    let dates: Vec<(&str, Option<&str>)> =
        functions.as_array().unwrap().iter().map(|one| (one["at"].as_str().unwrap(), one["since"].as_str())).collect();
    assert_eq!(
        dates,
        [
            ("src/means/__init__.py::mean", None),
            ("src/means/__init__.py::clip", None),
            ("src/means/__init__.py::spread", Some("2026-07-02"))
        ]
    );
    lab.ok(&["check", "--suite", "new"]);
    // `--after` only draws samples whose functions are all younger than the date.
    let drawn = lab.ok(&["sample", "--suite", "new", "-n", "1..3", "--after", "2026-06-01"]);
    assert_eq!(drawn.stdout.lines().count(), 1, "{}", drawn.stdout);
    assert!(drawn.stdout.contains(&format!("\"{name}_2\"")), "{}", drawn.stdout);
    let error = lab.fails(2, &["run", "--suite", "new", "--agent", "noop", "--after", "2026-07-02"]);
    assert!(error.contains("nothing here is known to have become public after 2026-07-02"), "{error}");
    // Older functions have the date of the package's first release, which is before the cutoff.
    lab.write("model.jsonl", "{\"text\": \"I do not know.\"}\n");
    lab.ok(&["run", "--suite", "new", "--agent", "fixed", "--model", "scripted:model.jsonl", "--name", "r"]);
    let model = lab.records("r")[0]["model"].as_str().unwrap().to_owned();
    let rates = lab.ok(&["report", "dates", "r", "--cutoff", &format!("{model}=2026-05"), "--json"]);
    let rates: Value = serde_json::from_str(&rates.stdout).unwrap();
    let samples: Vec<(&str, u64)> = rates["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["public"].as_str().unwrap(), row["samples"].as_u64().unwrap()))
        .collect();
    assert_eq!(samples, [("before", 2), ("after", 1)], "{rates:#}");
}
