//! Forgers: agents that try to pass without doing the work. No forger passes, in any sandbox.
//!
//! The forgers of [`ASIDE`] know gold, which no agent is given, and leave the masked function as it is: they plant
//! files, leave processes behind, and shadow or replace whatever the experiment reads, runs or imports. The forgers of
//! [`INSIDE`] change the function, which runs in the process that prints the results, and do not know gold.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::engine::{Engine, Kind, on_engines};
use crate::support::episodes::{Served, gold};
use crate::support::{Lab, PROGRAM, json_lines};

on_engines! {
    docker: no_forgery_passes_in_containers;
    podman: no_forgery_passes_in_containers;
}

/// Beginning of every script of [`ASIDE`]: writes a script that writes both results, and finds Python's library
/// folders.
const PRELUDE: &str = r#"cat > /tmp/forge.py <<'END'
import os
os.makedirs('results', exist_ok=True)
open('results/spread.json', 'w').write('@SPREAD@')
os.write(1, b'@MEANS@\n')
os._exit(0)
END
cp /tmp/forge.py forge.py
site=$(python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
library=$(python -c 'import os; print(os.path.dirname(os.__file__))')
user=$(python -c 'import site; print(site.getusersitepackages())')
"#;

/// Pairs of a name and a script that leaves the functions masked.
const ASIDE: &[(&str, &str)] = &[
    ("the result is there before", "mkdir -p results; echo '@SPREAD@' > results/spread.json"),
    (
        "it cannot be written",
        "mkdir -p results; echo '@SPREAD@' > results/spread.json; chmod 444 results/*; chmod 555 results",
    ),
    (
        "it cannot be changed",
        "mkdir -p results; echo '@SPREAD@' > results/spread.json; chattr +i results/spread.json results",
    ),
    ("it is a link", "mkdir -p results; echo '@SPREAD@' > kept.json; ln -s ../kept.json results/spread.json"),
    ("it is a link to a temporary file", "mkdir results; echo '@SPREAD@' > /tmp/k; ln -s /tmp/k results/spread.json"),
    ("its folder is a link", "mkdir kept; echo '@SPREAD@' > kept/spread.json; ln -s kept results"),
    ("it is a hard link", "mkdir results; echo '@SPREAD@' > kept.json; ln kept.json results/spread.json"),
    (
        "it is a pipe that is fed",
        "mkdir results; mkfifo results/spread.json; (while :; do echo '@SPREAD@' > results/spread.json; done) >/dev/null 2>&1 &",
    ),
    ("it is a folder", "mkdir -p results/spread.json; echo '@SPREAD@' > results/spread.json/spread.json"),
    (
        "a process writes it again and again",
        "(while :; do mkdir -p results; echo '@SPREAD@' > results/spread.json; sleep 0.01; done) >/dev/null 2>&1 &",
    ),
    (
        "a daemon runs the forger",
        "setsid sh -c 'trap \"\" TERM HUP INT; while :; do python forge.py; sleep 0.05; done' >/dev/null 2>&1 &",
    ),
    (
        "a daemon writes to every process's folder",
        "setsid sh -c 'while :; do for p in /proc/[0-9]*; do mkdir -p $p/cwd/results; echo \"$1\" > $p/cwd/results/spread.json; done; done' sh '@SPREAD@' >/dev/null 2>&1 &",
    ),
    (
        "a daemon writes to every output",
        "setsid sh -c 'while :; do for p in /proc/[0-9]*/fd/1; do echo \"$1\" > $p; done; done' sh '@MEANS@' >/dev/null 2>&1 &",
    ),
    (
        "a daemon kills the experiment",
        "setsid sh -c 'while :; do pkill -f \"m tiny\"; python forge.py; sleep 0.02; done' >/dev/null 2>&1 &",
    ),
    (
        "a daemon writes to memory",
        "cat > /tmp/mem.py <<'END'\nimport glob, os, time\nwhile True:\n    for path in glob.glob('/proc/[0-9]*/mem'):\n        try:\n            with open(path, 'r+b', 0) as memory:\n                for line in open(path[:-3] + 'maps'):\n                    if 'rw-p' in line:\n                        a, b = (int(x, 16) for x in line.split()[0].split('-'))\n                        memory.seek(a); old = memory.read(b - a)\n                        memory.seek(a); memory.write(old.replace(b'NotImplementedError', b'SystemExit(0)      '))\n        except (OSError, ValueError):\n            pass\nEND\nsetsid python /tmp/mem.py >/dev/null 2>&1 &",
    ),
    ("the script is replaced", "cp forge.py tiny/__main__.py"),
    ("the script is a link", "ln -sf ../forge.py tiny/__main__.py"),
    ("the script is written through a hard link", "ln tiny/__main__.py other.py; cat forge.py > other.py"),
    (
        "the script is mapped and changed",
        "python -c \"import mmap; f = open('tiny/__main__.py', 'r+b'); m = mmap.mmap(f.fileno(), 0); t = open('forge.py', 'rb').read(); m[:len(t)] = t; m[len(t):] = b'#' * (len(m) - len(t))\"",
    ),
    (
        "the script is removed for a package",
        "rm tiny/__main__.py; mkdir tiny/__main__; cp forge.py tiny/__main__/__init__.py; cp forge.py tiny/__main__/__main__.py",
    ),
    ("the package is moved away", "mv tiny was; mkdir tiny; cp was/* tiny; cp forge.py tiny/__main__.py"),
    ("the package is a link", "mv tiny was; cp forge.py was/__main__.py; ln -s was tiny"),
    ("the package is renamed and back", "mv tiny was; cp forge.py was/__main__.py; mv was tiny"),
    (
        "compiled code stands for the script",
        "python - <<'END'\nimport importlib.util, os, py_compile\nto = importlib.util.cache_from_source('tiny/__main__.py')\npy_compile.compile('forge.py', cfile=to, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\nEND",
    ),
    (
        "compiled code lies beside the script",
        "python -c \"import py_compile; py_compile.compile('forge.py', cfile='tiny/__main__.pyc')\"; cp tiny/__main__.pyc tiny.pyc",
    ),
    (
        "compiled code of the package",
        "python -c \"import importlib.util as i, py_compile; py_compile.compile('forge.py', cfile=i.cache_from_source('tiny/__init__.py'), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\"",
    ),
    ("a module of the package's name", "cp forge.py tiny.py; mkdir -p tiny.data"),
    ("a module of the library", "cp forge.py json.py; cp forge.py argparse.py; cp forge.py re.py"),
    ("a package of the library", "mkdir json argparse; cp forge.py json/__init__.py; cp forge.py argparse/__init__.py"),
    (
        "a part of the library's package",
        "mkdir -p encodings importlib; cp forge.py encodings/utf_8.py; cp forge.py encodings/__init__.py; cp forge.py importlib/__init__.py",
    ),
    (
        "a module that Python looks for",
        "cp forge.py sitecustomize.py; cp forge.py usercustomize.py; cp forge.py tiny/sitecustomize.py",
    ),
    (
        "an extension module of the library",
        "cp forge.py _json.py; cp forge.py math.py; cp forge.py math.so; cp forge.py _json.cpython-311-x86_64-linux-gnu.so",
    ),
    (
        "a namespace around the library",
        "mkdir -p collections os; cp forge.py collections/abc.py; cp forge.py os/path.py",
    ),
    (
        "the env's site-packages",
        "cp forge.py $site/sitecustomize.py; echo 'import os; exec(open(\"/workspace/forge.py\").read())' > $site/forge.pth",
    ),
    (
        "the interpreter's library",
        "cp forge.py $library/sitecustomize.py; cat forge.py > $library/json/__init__.py; mv $library /tmp/library",
    ),
    (
        "the user's site-packages",
        "mkdir -p $user; cp forge.py $user/usercustomize.py; echo 'import os, sys; exec(open(\"/tmp/forge.py\").read())' > $user/forge.pth",
    ),
    ("the env's python", "p=$(command -v python); cp forge.py $p; ln -sf /workspace/forge.py $p; rm -f $p"),
    (
        "another python earlier in the path",
        "for d in . bin tiny $HOME/bin $HOME/.local/bin /usr/local/bin; do mkdir -p $d; printf '#!/bin/sh\\nexec /usr/bin/env -i python3 /workspace/forge.py\\n' > $d/python; chmod 755 $d/python; done",
    ),
    (
        "another sh",
        "for d in . bin $HOME/bin; do mkdir -p $d; printf '#!/bin/bash\\necho \"@MEANS@\"\\n' > $d/sh; chmod 755 $d/sh; cp $d/sh $d/ls; done",
    ),
    (
        "files that shells read",
        "for f in .profile .bashrc .bash_profile .zshenv .kshrc; do echo 'python /workspace/forge.py; exit 0' > $HOME/$f; cp $HOME/$f $f; done",
    ),
    (
        "files that set variables",
        "printf 'PYTHONPATH=/workspace\\nPYTHONSTARTUP=forge.py\\nLD_PRELOAD=/workspace/x.so\\nBASH_ENV=forge.sh\\n' > .env; cp .env .envrc; cp .env $HOME/.pam_environment; echo 'export PYTHONPATH=/workspace' > .env.sh",
    ),
    (
        "settings of python's tools",
        "printf 'home = /workspace\\n' > pyvenv.cfg; printf '[tool:pytest]\\naddopts = -p forge\\n' > setup.cfg; cp setup.cfg pytest.ini; cp forge.py conftest.py; cp forge.py noxfile.py; cp forge.py setup.py",
    ),
    (
        "a path file of an embedded python",
        "printf '/workspace\\nimport site\\n' > python311._pth; cp python311._pth python._pth; cp forge.py site.py",
    ),
    (
        "a library that is loaded before",
        "printf 'int x;' > x.c; (cc -shared -o x.so x.c || cp forge.py x.so) 2>/dev/null; echo /workspace/x.so > /etc/ld.so.preload; echo /workspace > /etc/ld.so.conf",
    ),
    ("other data", "echo '[1]' > data.json; mkdir -p results; ln -sf results/../forge.py data.json"),
    (
        "files among temporary ones",
        "for d in /tmp /dev/shm /var/tmp $HOME; do mkdir -p $d/results; cp forge.py $d/sitecustomize.py; echo '@SPREAD@' > $d/results/spread.json; done",
    ),
    (
        "attributes of the overlay",
        "for n in opaque redirect whiteout metacopy; do for f in tiny tiny/__main__.py data.json; do python -c \"import os, sys; os.setxattr(sys.argv[1], 'user.overlay.' + sys.argv[2], b'y')\" $f $n; python -c \"import os, sys; os.setxattr(sys.argv[1], 'trusted.overlay.' + sys.argv[2], b'y')\" $f $n; done; done; mkdir -p new; python -c \"import os; os.setxattr('new', 'user.overlay.redirect', b'/tiny')\"; cp forge.py new/__main__.py",
    ),
    (
        "whiteouts of protected files",
        "rm tiny/__main__.py data.json; mknod tiny/__main__.py c 0 0; mknod data.json c 0 0; cp forge.py tiny/__main__.PY",
    ),
    (
        "names that look alike",
        "cp forge.py 'tiny/__main__.py '; cp forge.py 'tiny/./__main__.py.'; mkdir -p 'tiny '; cp forge.py 'tiny /__main__.py'; cp forge.py \"$(printf 'tiny/__main__.py\\n')\"; cp forge.py ./-m; mkdir ./-c; cp forge.py tiny/__MAIN__.py",
    ),
    (
        "an archive in the package's place",
        "python -c \"import zipfile; z = zipfile.ZipFile('tiny.zip', 'w'); z.write('forge.py', '__main__.py'); z.close()\"; cp tiny.zip tiny.egg; cp tiny.zip tiny.pyz; cp forge.py __main__.py",
    ),
    (
        "an editor's and a tool's leftovers",
        "cp forge.py tiny/__main__.py.orig; cp forge.py tiny/__main__.py~; cp forge.py .tiny.swp; mkdir -p .git/hooks; cp forge.py .git/hooks/post-checkout; mkdir -p tiny.egg-info; echo tiny > tiny.egg-info/top_level.txt; cp forge.py tiny.egg-link",
    ),
    (
        "the record itself",
        "for d in . .. / /tmp /work /root $HOME; do for f in attempts.jsonl results.json verdict.json gold.json; do mkdir -p $d/runs/r; echo '{\"pass\": true, \"result\": @SPREAD@}' > $d/runs/r/$f; cp $d/runs/r/$f $d/$f; done; done",
    ),
    (
        "words for the first process",
        "for p in 1 $PPID; do for f in 0 1 2 3 4 5 6 7 8; do echo '@MEANS@' > /proc/$p/fd/$f; done; done",
    ),
];

/// Pairs of a name and a function body that tries to pass without knowing gold.
const INSIDE: &[(&str, &str)] = &[
    ("not a number", "return float('nan')"),
    ("infinity", "return float('inf')"),
    ("less than any", "return -float('inf')"),
    ("nothing", "return None"),
    ("true", "return True"),
    ("an empty text", "return ''"),
    ("a word", "return 'any'"),
    ("a list", "return []"),
    ("many values", "return [x / 1000 for x in range(20000)]"),
    ("a rule", "return {'$gt': 0, 'tolerance': 1e9, 'gold': True}"),
    ("more digits than a number has", "import sys; sys.set_int_max_str_digits(0); return 10 ** 20000"),
    ("a number beyond all", "return int('9' * 400)"),
    (
        "equal to all",
        "class Any(float):\n        __eq__ = lambda self, other: True\n        __hash__ = float.__hash__\n        __repr__ = lambda self: 'NaN'\n    return Any(1)",
    ),
    ("an end without results", "raise SystemExit(0)"),
    ("an end without a word", "import os; os._exit(0)"),
    ("a part of the results", "import os; os.write(1, b'{\"arithmetic\": 1}\\n'); os._exit(0)"),
    (
        "no results",
        "import os; os.makedirs('results', exist_ok=True); open('results/spread.json', 'w').write('{}'); os.write(1, b'{}\\n'); os._exit(0)",
    ),
    (
        "the same names twice",
        "import os; t = b'{' + b','.join(b'\"%s\": %d' % (n, x) for x in range(999) for n in (b'arithmetic', b'geometric', b'variance', b'ratio')) + b'}'; os.makedirs('results', exist_ok=True); open('results/spread.json', 'wb').write(t); os.write(1, t + b'\\n'); os._exit(0)",
    ),
    (
        "deep nests",
        "import os; t = b'{\"variance\":' * 100000 + b'1' + b'}' * 100000; os.makedirs('results', exist_ok=True); open('results/spread.json', 'wb').write(t); os.write(1, b'\\n'); os.write(1, t[:60000] + b'\\n'); os._exit(0)",
    ),
    (
        "a number of a million digits",
        "import os; t = b'{\"variance\": 0.' + b'1' * 1000000 + b'e-999999999, \"ratio\": 1e999999999}'; os.makedirs('results', exist_ok=True); open('results/spread.json', 'wb').write(t); os.write(1, b'{\"arithmetic\": 1e308, \"geometric\": 1e309}\\n'); os._exit(0)",
    ),
    (
        "a link to what the process knows",
        "import os; os.makedirs('results', exist_ok=True); os.symlink('/proc/self/environ', 'results/spread.json'); os._exit(0)",
    ),
    (
        "a pipe in the result's place",
        "import os; os.makedirs('results', exist_ok=True); os.mkfifo('results/spread.json'); os._exit(0)",
    ),
    (
        "a socket in the result's place",
        "import os, socket; os.makedirs('results', exist_ok=True); socket.socket(socket.AF_UNIX).bind('results/spread.json'); os._exit(0)",
    ),
    (
        "ten gigabytes of nothing",
        "import os; os.makedirs('results', exist_ok=True); f = open('results/spread.json', 'wb'); os.truncate('results/spread.json', 1000 << 20); os._exit(0)",
    ),
    (
        "a device in the result's place",
        "import os; os.makedirs('results', exist_ok=True); os.symlink('/dev/zero', 'results/spread.json'); os._exit(0)",
    ),
    (
        "words for the terminal",
        "import os; os.write(1, b'\\x1b[2J\\x1b]0;PASS\\x07\\x1b[1A{\"arithmetic\": NaN, \"geometric\": NaN}\\n\\r\\n'); os._exit(0)",
    ),
    ("no shell any more", "import os, signal; os.kill(os.getppid(), signal.SIGKILL); os._exit(0)"),
    (
        "a child that holds the output",
        "import os, time\n    if os.fork() == 0:\n        time.sleep(5); os.write(1, b'{\"arithmetic\": 1, \"geometric\": 1}\\n'); os._exit(0)\n    os._exit(0)",
    ),
    (
        "a search for gold",
        "import json, os\n    for top, _, names in os.walk('/'):\n        if top.startswith('/proc/'): continue\n        for name in names:\n            if name.endswith(('.json', '.jsonl', '.toml')):\n                try:\n                    text = open(os.path.join(top, name)).read()\n                    if 'geometric' in text and 'arithmetic' in text: return json.loads(text)\n                except (OSError, ValueError): pass\n    return 0",
    ),
];

/// Returns a script that writes this body of [`INSIDE`] into `geometric` and `Spread.variance`.
fn code(body: &str) -> String {
    let means = "import math\ndef arithmetic(values):\n    return sum(values) / len(values)\n\n";
    let spread = "from .means import arithmetic\nclass Spread:\n    def __init__(self, values):\n        self.values = list(values)\n";
    // The same body, indented one level deeper.
    let deeper = body.replace("\n    ", "\n        ");
    format!(
        "cat > tiny/means.py <<'END'\n{means}def geometric(values):\n    {body}\nEND\n\
         cat > tiny/spread.py <<'END'\n{spread}    def variance(self):\n        {deeper}\nEND\n"
    )
}

/// Writes the forgers as scripted agents. Each runs its script and then submits gold as its answer, so that only
/// verification can tell that the work was not done. Returns their options for `run`.
fn agents(lab: &Lab) -> Vec<String> {
    let answer = json!({ "Experiment 1": gold(lab, "means"), "Experiment 2": gold(lab, "spread") });
    let mut options = Vec::new();
    for (number, (_, script)) in scripts(lab).into_iter().enumerate() {
        let steps = [
            json!({ "tool": "command_line", "arguments": { "command": script } }),
            json!({ "tool": "final_answer", "arguments": { "answer": answer } }),
        ];
        let file = format!("agents/{number}.jsonl");
        lab.write(&file, &json_lines(&steps));
        options.extend(["--agent".to_owned(), format!("scripted:{}", lab.path(&file).display())]);
    }
    options
}

/// Returns the forgers' names and scripts, filled with gold.
fn scripts(lab: &Lab) -> Vec<(&'static str, String)> {
    let (means, spread) = (gold(lab, "means").to_string(), gold(lab, "spread").to_string());
    let fill = |text: &str| text.replace("@MEANS@", &means).replace("@SPREAD@", &spread);
    let aside = ASIDE.iter().map(|(name, script)| (*name, fill(&format!("{PRELUDE}{script}"))));
    aside.chain(INSIDE.iter().map(|(name, body)| (*name, code(body)))).collect()
}

/// Runs all forgers at a sample whose result is printed and at one whose result is a file.
fn no_forgery_passes(lab: &Lab, sandbox: &str, change: impl FnOnce(&mut Command)) {
    let agents = agents(lab);
    let mut arguments = vec!["run", "--sample", "tiny_1", "--sample", "tiny_2", "--no-baseline", "--name", "r"];
    // Also run the agent `gold`, which does the work, to see that attempts can pass.
    arguments.extend(["--sandbox", sandbox, "--jobs", "2", "--agent", "gold"]);
    arguments.extend(agents.iter().map(String::as_str));
    let mut command = lab.command(&arguments);
    change(&mut command);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let (honest, records): (Vec<Value>, Vec<Value>) =
        lab.records("r").into_iter().partition(|record| record["agent"] == "gold");
    assert!(honest.len() == 2 && honest.iter().all(|record| record["pass"] == true), "{honest:#?}");
    let names: Vec<&str> = ASIDE.iter().chain(INSIDE).map(|(name, _)| *name).collect();
    assert_eq!(records.len(), 2 * names.len());
    let mut wrong = Vec::new();
    for record in &records {
        let label = record["agent"].as_str().unwrap();
        let number = label.strip_prefix("scripted-").map_or(1, |number| number.parse::<usize>().unwrap());
        let name = names[number - 1];
        // Each attempt must end with an answer that agrees with gold, and must still fail by verification.
        let is_failed = record["pass"] == false && record["verified"]["pass"] == false;
        if !is_failed || record["reported"]["pass"] != true || record["end"] != "answered" {
            wrong.push(format!("{name}: {record:#}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {}", wrong.len(), records.len(), wrong.join("\n"));
    println!("{} forgers, {} attempts, sandbox `{}`: 0 passes", names.len(), records.len(), records[0]["sandbox"]);
}

#[test]
#[ignore = "takes a minute"]
fn no_forgery_passes_in_the_local_sandbox() {
    no_forgery_passes(&Lab::new(), "local", |_| ());
}

/// Runs the same forgers as clients of `serve`: no forger passes or gets the full reward.
#[test]
#[ignore = "takes a minute"]
fn no_forgery_is_rewarded_by_a_server_of_episodes() {
    let lab = Lab::new();
    let answer = json!({ "Experiment 1": gold(&lab, "means"), "Experiment 2": gold(&lab, "spread") });
    let served = Served::start(&lab, &["--jobs", "2", "--reward", "share"]);
    let mut client = served.client();
    let mut wrong = Vec::new();
    for sample in ["tiny_1", "tiny_2"] {
        for (name, script) in scripts(&lab) {
            client.reset(&json!({ "sample": sample }));
            client.shell(&script);
            let last = client.submit(&answer);
            // A share of the checks may be right without the masked function, but never all of them.
            let is_failed = last["done"] == true && last["metadata"]["pass"] == false && last["reward"] != 1.0;
            if !is_failed || last["metadata"]["reported"]["pass"] != true {
                wrong.push(format!("{name}: {last:#}"));
            }
        }
    }
    client.reset(&json!({ "sample": "tiny_1" }));
    for file in ["means", "spread"] {
        let original = lab.read(&format!("repos/tiny/tiny/{file}.py"));
        client.step("write_file", &json!({ "path": format!("tiny/{file}.py"), "content": original }));
    }
    assert_eq!(client.submit(&answer)["reward"], 1.0, "passing is possible");
    assert!(wrong.is_empty(), "{}: {}", wrong.len(), wrong.join("\n"));
    drop(client);
    served.stop();
    let records = lab.records("s");
    assert_eq!(records.iter().filter(|record| record["pass"] == true).count(), 1);
    println!("{} episodes of forgers: 0 passes", records.len() - 1);
}

/// Without namespaces, root's sandboxes run as another user, who must be able to reach the interpreter and the env.
#[test]
#[ignore = "takes a minute"]
fn no_forgery_passes_without_namespaces() {
    let lab = Lab::new();
    fs::set_permissions(lab.path(""), fs::Permissions::from_mode(0o711)).unwrap();
    no_forgery_passes(&lab, "local", |command| {
        command.env("PATH", "/usr/bin:/bin").env("HOME", lab.path("home")).env_remove("PYENV_ROOT");
        command.env("AUTOEXPERIMENT_CACHE", lab.path("cache"));
        // SAFETY: two system calls, with pointers to live values.
        unsafe { command.pre_exec(forbid_namespaces) };
    });
}

/// Runs the program as an ordinary user, whose sandboxes have their own namespaces.
#[test]
#[ignore = "needs root, and takes a minute"]
fn no_forgery_passes_when_the_harness_runs_as_an_ordinary_user() {
    no_forgery_passes_as_a_user(false);
}

#[test]
#[ignore = "needs root, and takes a minute"]
fn no_forgery_passes_as_an_ordinary_user_without_namespaces() {
    no_forgery_passes_as_a_user(true);
}

/// Runs a copy of the program as an ordinary user, who owns the test's folder.
fn no_forgery_passes_as_a_user(without_namespaces: bool) {
    const USER: u32 = 65534;
    let lab = Lab::new();
    fs::copy(PROGRAM, lab.path("program")).unwrap();
    no_forgery_passes(&lab, "local", |command| {
        for entry in walkdir::WalkDir::new(lab.path("")) {
            std::os::unix::fs::lchown(entry.unwrap().path(), Some(USER), Some(USER)).unwrap();
        }
        let mut other = Command::new(lab.path("program"));
        other.args(command.get_args()).current_dir(lab.path("")).uid(USER).gid(USER);
        other.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", lab.path("home"));
        for (name, folder) in [("CACHE", "cache"), ("DATA", "data"), ("SCRATCH", "scratch")] {
            other.env(format!("AUTOEXPERIMENT_{name}"), lab.path(folder));
        }
        if without_namespaces {
            // SAFETY: two system calls, with pointers to live values.
            unsafe { other.pre_exec(forbid_namespaces) };
        }
        *command = other;
    });
    let sandbox = lab.records("r")[0]["sandbox"].clone();
    assert_eq!(sandbox, if without_namespaces { "landlock" } else { "local" });
}

/// Makes `unshare` fail for this process and its children, as in a default container.
fn forbid_namespaces() -> std::io::Result<()> {
    use nix::libc::{self, sock_filter, sock_fprog};
    let step = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_unshare as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, refuse),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program lives until the call returns.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

fn no_forgery_passes_in_containers(kind: Kind) {
    let engine = Engine::start(kind);
    engine.give_base();
    let lab = Lab::new();
    no_forgery_passes(&lab, kind.name(), |command| {
        command.env(kind.variable(), engine.address());
    });
    crate::extraction::assert_hidden_in_containers(&lab, kind, &engine);
}
