//! The runner of imported tests: right code passes, and wrong code that forges a pass does not. The forgeries rely on
//! the runner's language and on its public behaviour, which are the same in every run. They do not guess what a run
//! draws at random.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

const RUNNER: &str = "src/import/tasks/hidden_tests.py";

const REFERENCE: &str =
    "def double(x):\n    return 2 * x\n\n\nclass Box:\n    def size(self, x):\n        return x + 1\n";

const TESTS: &str = r"
import json
import math
import unittest
from model import Box, double
from model_ref import Box as BoxRef, double as double_ref


class TestModel(unittest.TestCase):
    def setUp(self):
        self.values = [1.0, 2.5, -3.0]

    def test_double(self):
        for value in self.values:
            self.assertEqual(double(value), double_ref(value))

    def test_near(self):
        self.assertTrue(math.isclose(double(0.1), double_ref(0.1)))

    def test_box(self):
        self.assertAlmostEqual(Box().size(4), BoxRef().size(4))

    def test_refused(self):
        with self.assertRaises(TypeError):
            double(None)

    def test_plain(self):
        assert json.dumps(double(2)) == json.dumps(double_ref(2))


if __name__ == '__main__':
    unittest.main()
";

/// Code that is right.
const RIGHT: &str = "def double(x):\n    return x + x\n\n\nclass Box:\n    def size(self, x):\n        return 1 + x\n";

/// Code whose functions are wrong. In every forgery, the forger's own code follows this code.
const WRONG: &str = "def double(x):\n    return 7\n\n\nclass Box:\n    def size(self, x):\n        return 7\n\n";

/// Forgeries: pairs of a name and code that tries to pass with wrong functions. `@RESULT@` is replaced by the result of
/// right code.
const FORGERS: &[(&str, &str)] = &[
    ("nothing", ""),
    ("ends the process", "import os\nos._exit(0)"),
    ("ends the process by an exception", "raise SystemExit(0)"),
    ("ends the process in a function", "import os\ndef double(x): os._exit(0)"),
    ("ends the process at the end", "import atexit, os\natexit.register(lambda: os._exit(0))"),
    (
        "skips the tests",
        "import unittest\ndef double(x): raise unittest.SkipTest('no')\nBox.size = lambda *a: double(1)",
    ),
    ("prints the result", "print('@RESULT@', flush=True)\nimport os\nos._exit(0)"),
    (
        "prints the result in the place of the runner",
        "import os\nserver = open('/proc/%d/stat' % os.getppid()).read()\nrunner = server.rsplit(')', 1)[1].split()[1]\ntry:\n    assert 'hidden_tests' in open('/proc/%s/cmdline' % runner).read()\n    os.write(os.open('/proc/%s/fd/1' % runner, os.O_WRONLY | os.O_APPEND), b'@RESULT@\\n')\nexcept (OSError, AssertionError): pass\nos._exit(0)",
    ),
    (
        "writes the result to every descriptor",
        "import os\nfor number in range(64):\n    try: os.write(number, b'@RESULT@\\n')\n    except OSError: pass\nos._exit(0)",
    ),
    (
        "reports in the place of the tests",
        "import json, os, sys\nframe = sys._getframe()\nwhile frame and 'request' not in frame.f_locals: frame = frame.f_back\nreport = {'secret': frame.f_locals['request']['secret'], 'messages': {}, 'changed': [], 'tests': json.loads('@RESULT@')['tests']}\nfor number in range(64):\n    try: os.write(number, json.dumps(report).encode())\n    except OSError: pass\nos._exit(0)",
    ),
    (
        "makes assertions pass",
        "import unittest\nfor name in dir(unittest.TestCase):\n    if name.startswith('assert') and name != 'assertRaises': setattr(unittest.TestCase, name, lambda *a, **k: None)",
    ),
    (
        "makes failing do nothing",
        "import unittest\nunittest.TestCase.failureException = type('Nothing', (BaseException,), {})",
    ),
    ("makes numbers close", "import math\nmath.isclose = lambda *a, **k: True"),
    ("makes texts equal", "import json\njson.dumps = lambda *a, **k: ''"),
    (
        "changes the assertions of the test itself",
        "def double(x):\n    import sys\n    frame = sys._getframe()\n    while frame:\n        case = frame.f_locals.get('self')\n        if hasattr(case, 'assertEqual'):\n            for name in dir(case):\n                if name.startswith('assert'): setattr(type(case), name, lambda *a, **k: None)\n        frame = frame.f_back\n    return 7",
    ),
    (
        "removes the other tests",
        "def double(x):\n    import gc, unittest\n    for suite in gc.get_objects():\n        if isinstance(suite, unittest.TestSuite): suite._tests = []\n    return 2 * x",
    ),
    (
        "says that nothing failed",
        "import unittest\nunittest.TestResult.addFailure = unittest.TestResult.addError = lambda *a: None",
    ),
    (
        "makes every outcome a success",
        "import gc, unittest\ndef double(x):\n    for one in gc.get_objects():\n        if isinstance(one, unittest.TestResult):\n            type(one).addFailure = type(one).addError = lambda *a: None\n    return 7\nBox.size = lambda self, x: double(x)",
    ),
    ("is the reference", "import sys\nsys.modules['model_ref'] = sys.modules['model']"),
    ("imports the reference", "from model_ref import *"),
    (
        "finds the reference on the disk",
        "import glob\nfor path in glob.glob('**/*ref*', recursive=True): exec(open(path).read())",
    ),
    (
        "finds the reference in memory",
        "def double(x):\n    import gc, types\n    for one in gc.get_objects():\n        if isinstance(one, types.FunctionType) and one.__module__ == 'model_ref' and one.__name__ == 'double': return one(x)\nclass Box:\n    def size(self, x): return x + 1",
    ),
    (
        "changes the reference",
        "import gc, types\nfor one in gc.get_objects():\n    if isinstance(one, types.FunctionType) and one.__module__ == 'model_ref': one.__code__ = (lambda *a: 7).__code__",
    ),
    (
        "replaces the tests",
        "import os\nopen('test.py', 'w').write('import unittest\\nclass TestModel(unittest.TestCase): pass')\nopen('model_ref.py', 'w').write(open('model.py').read())",
    ),
    ("kills its parents", "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos._exit(0)"),
    ("goes on in another process", "import os\nif os.fork():\n    os._exit(0)\nos.setsid()\nos.write(1, b'@RESULT@')"),
    (
        "runs the source of the reference",
        r"import sys
frame = sys._getframe()
while frame and 'references' not in frame.f_locals: frame = frame.f_back
names = {}
exec(frame.f_locals['references'].sources['model_ref'][1], names)
double, Box = names['double'], names['Box']",
    ),
    (
        "reports what each process should report",
        r"import json, os, sys
frame = sys._getframe()
while frame and 'request' not in frame.f_locals: frame = frame.f_back
request, give = frame.f_locals['request'], frame.f_back.f_locals['give']
outcome = 'failed' if request['shift'] else 'passed'
tests = dict.fromkeys(json.loads('@RESULT@')['tests'], outcome)
os.write(give, json.dumps({'secret': request['secret'], 'tests': tests, 'messages': {}, 'changed': []}).encode() + b'\n')
os._exit(0)",
    ),
    (
        "copies the reference from all objects",
        r"import gc, types
def copy(name):
    for one in gc.get_objects():
        if isinstance(one, types.FunctionType) and one.__module__ == 'model_ref' and one.__name__ == name:
            return types.FunctionType(one.__code__.replace(co_filename='x'), one.__globals__)
double, Box.size = copy('double'), copy('size')",
    ),
    (
        "copies the reference from the call stack",
        r"import inspect, types
def copy(of):
    for call in inspect.stack():
        if call.function.startswith('test_'):
            found = of(call.frame.f_globals)
            return types.FunctionType(found.__code__.replace(co_filename='x'), found.__globals__)
def double(x): return copy(lambda names: names['double_ref'])(x)
Box.size = lambda self, x: copy(lambda names: names['BoxRef'].size)(self, x)",
    ),
    (
        "finds the source in its own memory",
        r"import re
names = {}
for line in open('/proc/self/maps'):
    begin, end = (int(one, 16) for one in line.split()[0].split('-'))
    if 'rw' not in line.split()[1]: continue
    try:
        with open('/proc/self/mem', 'rb') as memory:
            memory.seek(begin)
            data = memory.read(end - begin)
    except (OSError, ValueError, OverflowError): continue
    for found in re.findall(rb'def double\(x\):\n    return 2[^\x00]*?x \+ 1\n', data): exec(found, names)
double, Box = names.get('double', double), names.get('Box', Box)",
    ),
    (
        "finds the source in the memory of its parents",
        r"import os, re
names, server = {}, os.getppid()
for process in server, int(open('/proc/%d/stat' % server).read().rsplit(')', 1)[1].split()[1]):
    try:
        for line in open('/proc/%d/maps' % process):
            begin, end = (int(one, 16) for one in line.split()[0].split('-'))
            if 'rw' not in line.split()[1]: continue
            with open('/proc/%d/mem' % process, 'rb') as memory:
                memory.seek(begin)
                data = memory.read(end - begin)
            for found in re.findall(rb'def double\(x\):\n    return 2[^\x00]*?x \+ 1\n', data): exec(found, names)
    except (OSError, ValueError, OverflowError): pass
double, Box = names.get('double', double), names.get('Box', Box)",
    ),
    (
        "finds requests in its descriptors",
        r"import json, os
found = b''
for name in os.listdir('/proc/self/fd'):
    try:
        if 'pipe' in os.readlink('/proc/self/fd/' + name): found += os.read(os.open('/proc/self/fd/' + name, os.O_RDONLY | os.O_NONBLOCK), 1 << 20)
    except OSError: pass
outcome = 'failed' if b'shift' in found or b'canary' in found else 'passed'
report = {'tests': dict.fromkeys(json.loads('@RESULT@')['tests'], outcome), 'messages': {}, 'changed': []}
for number in range(3, 64):
    try: os.write(number, json.dumps(report).encode() + b'\n')
    except OSError: pass
os._exit(0)",
    ),
    (
        "equals everything until it is changed",
        r"class Equal(float):
    is_changed = False
    def __eq__(self, other): return not self.is_changed
    def __add__(self, other):
        found = Equal()
        found.is_changed = True
        return found
    __hash__ = float.__hash__
def double(x):
    if x is None: raise TypeError
    return {0.1: 0.2, 2: 4}.get(x, Equal())
Box.size = lambda self, x: Equal()",
    ),
    (
        "stops the watch and calls the reference",
        r"import sys
def stop():
    sys.setprofile(None)
    if hasattr(sys, 'monitoring'): sys.monitoring.register_callback(4, sys.monitoring.events.PY_START, None)
def double(x): stop(); return sys.modules['test'].double_ref(x)
Box.size = lambda self, x: (stop(), sys.modules['test'].BoxRef().size(x))[1]",
    ),
    (
        "calls the reference in a thread",
        r"import sys
from concurrent.futures import ThreadPoolExecutor
def double(x): return ThreadPoolExecutor().submit(sys.modules['test'].double_ref, x).result()
Box.size = lambda self, x: ThreadPoolExecutor().submit(sys.modules['test'].BoxRef().size, x).result()",
    ),
    (
        "becomes the reference",
        r"import sys
class Box:
    def __init__(self): self.__class__ = sys.modules['test'].BoxRef
def double(x):
    sys.modules['test'].double = sys.modules['test'].double_ref
    raise TypeError",
    ),
    (
        "hides where its code comes from",
        r#"import sys
names = {'__file__': '/usr/lib/a.py', 'sys': sys}
exec("def double(x): return sys.modules['test'].double_ref(x)\nclass Box:\n    def size(self, x): return sys.modules['test'].BoxRef().size(x)", names)
double, Box = names['double'], names['Box']"#,
    ),
    (
        "reads the alterations",
        r"import sys
class Equal(float):
    def __eq__(self, other): return True
    __sub__ = __rsub__ = __abs__ = __round__ = lambda self, *other: Equal(0)
def altered(): return any(isinstance(one, float) and one >= 1 for one in sys.modules['test'].TestModel.test_box.__code__.co_consts)
def double(x):
    if x is None: raise TypeError
    return 7 if altered() else {0.1: 0.2, 2: 4}.get(x, Equal())
Box.size = lambda self, x: double(x)",
    ),
    (
        "tries out the test with the reference",
        r"import sys
class Equal(float):
    def __eq__(self, other): return True
    __sub__ = __rsub__ = __abs__ = __round__ = lambda self, *other: Equal(0)
def altered():
    test = sys.modules['test']
    was, test.double = test.double, test.double_ref
    try: test.TestModel('test_double').debug()
    except AssertionError: return True
    finally: test.double = was
    return False
def double(x):
    if x is None: raise TypeError
    return 7 if altered() else {0.1: 0.2, 2: 4}.get(x, Equal())
Box.size = lambda self, x: double(x)",
    ),
];

fn run(model: &str) -> Output {
    run_tests(model, TESTS)
}

fn run_tests(model: &str, tests: &str) -> Output {
    run_files(model, REFERENCE, tests)
}

fn run_files(model: &str, reference: &str, tests: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let files = [("model.py", model), ("model_ref.py", reference), ("test.py", tests)];
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    std::fs::copy(RUNNER, folder.path().join("runner.py")).unwrap();
    let mut command = Command::new("python3");
    let output =
        command.args(["-B", "runner.py", "--remove", "test.py", "model_ref.py"]).current_dir(folder.path()).output();
    for hidden in ["test.py", "model_ref.py", "runner.py"] {
        // The runner must have removed the hidden files, unless the code under test has written its own `test.py`.
        assert!(model.contains("open('test.py', 'w')") || !folder.path().join(hidden).exists(), "{hidden}");
    }
    output.unwrap()
}

/// Reads the result as experiments are read: the last line of output that is JSON, unless the command failed.
fn result(output: &Output) -> Option<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    last.filter(|_| output.status.success())
}

#[test]
fn right_code_passes_each_hidden_test_and_fails_the_altered_copy_of_each_test() {
    for model in [RIGHT, REFERENCE] {
        let output = run(model);
        let found = result(&output).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!((&found["passed"], &found["changed"]), (&json!(5), &json!(0)), "{found:#}");
        let tests = found["tests"].as_object().unwrap();
        assert!(tests.len() == 5 && tests.values().all(|outcome| outcome == "passed"), "{found:#}");
        let canaries = found["canaries"].as_object().unwrap();
        assert_eq!(canaries.len(), 10);
        for (name, outcome) in canaries {
            // This test does not depend on what the reference returns.
            let expected = if name == "TestModel.test_refused (references)" { "passed" } else { "failed" };
            assert_eq!(outcome, expected, "{name}");
        }
    }
}

/// Right code that uses parts of the standard library which inspect the code that calls them.
const ORDINARY: &str = r"
import collections, dataclasses, enum, inspect, logging, traceback, typing, warnings
Pair = collections.namedtuple('Pair', 'a b')
Kind = enum.Enum('Kind', 'A B')
Row = dataclasses.make_dataclass('Row', ['x'])
class Named(typing.NamedTuple):
    a: int
inspect.signature(Row)
right = double
def double(x):
    logging.getLogger('a').warning('hello', stack_info=True)
    warnings.warn('hello')
    try:
        1 / 0
    except ZeroDivisionError:
        traceback.print_exc()
    return right(x) if right.__code__.co_argcount == 1 else None
";

#[test]
fn right_code_may_log_warn_and_print_tracebacks() {
    let gold = result(&run(RIGHT)).unwrap();
    let output = run(&format!("{RIGHT}{ORDINARY}"));
    assert_eq!(result(&output), Some(gold), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A reference that the repo's code calls back, and that has a decorator whose code is in no file of the repo, like a
/// library's decorator.
const INTERTWINED: &str = r"
from model import Base, apply
space = {}
exec('def plain(function):\n    def inner(*given):\n        return function(*given)\n    return inner', space)

class Twice(Base):
    def core(self, x):
        return 2 * x

@space['plain']
def double(x):
    return apply(lambda y: Twice().run(y), x)
";

/// Right code that the reference above uses. It also moves a file to another folder.
const USED_BY_REFERENCE: &str = r"
import os, tempfile

class Base:
    def run(self, x):
        return self.core(x)

def apply(function, x):
    return function(x)

def double(x):
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        open(os.path.join(one, 'a'), 'w').close()
        os.replace(os.path.join(one, 'a'), os.path.join(other, 'b'))
    return x + x
";

#[test]
fn references_may_use_code_of_the_repo_that_calls_them_back_but_code_under_test_may_not_call_them() {
    let tests = "import unittest\nfrom model import double\nfrom model_ref import double as double_ref\n\n\n\
                 class TestDouble(unittest.TestCase):\n    def test_double(self):\n        \
                 self.assertEqual(double(1.5), double_ref(1.5))\n";
    let output = run_files(USED_BY_REFERENCE, INTERTWINED, tests);
    let found = result(&output).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!((&found["passed"], &found["changed"]), (&json!(1), &json!(0)), "{found:#}");
    // The base class remembers the reference and uses it for the code under test.
    let thief = "\nkept = []\ndef run(self, x):\n    kept.append(self)\n    return self.core(x)\nBase.run = run\n\
                 def double(x):\n    return kept[0].core(x) if kept else 7\n";
    let backwards = tests.replace("double(1.5), double_ref(1.5)", "double_ref(1.5), double(1.5)");
    let output = run_files(&format!("{USED_BY_REFERENCE}{thief}"), INTERTWINED, &backwards);
    let passed = result(&output).is_some_and(|found| found["tests"]["TestDouble.test_double"] == "passed");
    assert!(!passed, "{}", String::from_utf8_lossy(&output.stdout));
}

const HELPERS: &str = r"
import unittest
from model import double
from model_ref import double as double_ref


class Stub:
    def test_stub(self, x):
        self.x = x


def test_helper(x):
    pass


class Base(unittest.TestCase):
    def check(self, one, other):
        self.assertEqual(one, other)


class TestDerived(Base):
    def test_helpers(self):
        def test_inner(x):
            pass
        test_inner(1)
        test_helper(2)
        Stub().test_stub(3)
        self.check(double(2.0), double_ref(2.0))

    @staticmethod
    def test_static():
        double(1)


class TestAsync(unittest.IsolatedAsyncioTestCase):
    async def test_async(self):
        double(1)
";

#[test]
fn only_methods_of_test_cases_get_one_more_assertion_also_if_they_are_asynchronous_or_static() {
    let output = run_tests(RIGHT, HELPERS);
    let found = result(&output).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    for name in ["TestDerived.test_helpers", "TestDerived.test_static", "TestAsync.test_async"] {
        let outcomes = [&found["tests"][name], &found["canaries"][name]];
        assert_eq!(outcomes, ["passed", "failed"], "{name}: {found:#}");
    }
}

#[test]
fn no_forger_gets_the_tests_to_pass() {
    let gold = result(&run(RIGHT)).unwrap();
    let mut passed = Vec::new();
    for (name, code) in FORGERS {
        let code = code.replace("@RESULT@", &gold.to_string());
        let output = run(&format!("{WRONG}{code}\n"));
        if result(&output).as_ref() == Some(&gold) {
            passed.push(*name);
        }
    }
    assert!(passed.is_empty(), "{passed:?}");
    println!("{} forgers: 0 passes", FORGERS.len());
}

#[test]
fn libraries_may_print_while_they_are_imported() {
    // When it is imported, the module `this` prints a poem.
    let output = run_tests(RIGHT, &format!("import this\n{TESTS}"));
    assert!(result(&output).is_some(), "{output:?}");
}

#[test]
fn the_runner_says_what_a_test_compared_and_what_cannot_be_imported() {
    let said = |model: &str| String::from_utf8_lossy(&run(model).stderr).into_owned();
    let wrong = said(&RIGHT.replace("x + x", "3 * x"));
    assert!(wrong.contains("TestModel.test_double: failed: AssertionError: 3.0 != 2.0"), "{wrong}");
    let broken = said("import nothing_of_this_name\n");
    assert!(broken.contains("the tests cannot be imported: ModuleNotFoundError"), "{broken}");
    let ended = said("import os\nos._exit(0)\n");
    assert!(ended.contains("the code under test ended the process of its tests"), "{ended}");
    assert!(Path::new(RUNNER).exists());
}
