//! Attacks on the bundled suite, which the program contains in compressed form: an agent searches everything that it
//! can read for gold.

use std::process::Command;

use serde_json::json;

use crate::support::engine::{Engine, Kind};
use crate::support::{Lab, PROGRAM};

/// A script that decompresses every gzip stream in all readable files, and prints the paths of files that contain gold.
/// It first writes such a file itself; finding this file shows that the search works.
const HUNT: &str = r#"
import gzip, io, os, sys, tarfile, time, zlib
plant = io.BytesIO()
with tarfile.open(fileobj=plant, mode="w:gz") as archive:
    gold = b'{"results": {"curtailed": {}}}' + os.urandom(5000)
    about = tarfile.TarInfo("papers/plant/gold.json")
    about.size = len(gold)
    archive.addfile(about, io.BytesIO(gold))
os.makedirs("planted", exist_ok=True)
with open("planted/program", "wb") as file:
    file.write(b"\x7fELF" + bytes(1 << 20) + plant.getvalue() + bytes(1000))
looked = found = 0
def inflated(data):
    try:
        return zlib.decompressobj(31).decompress(data, 64 << 20)
    except zlib.error:
        return b""
paths = [os.path.join(folder, name) for top in sys.argv[1:] for folder, _, names in os.walk(top) for name in names]
paths += [f"/proc/{pid}/{part}" for pid in os.listdir("/proc") if pid.isdigit() for part in ("exe",)]
for path in paths:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) < 100_000:
            continue
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        continue
    looked += 1
    at = data.find(b"\x1f\x8b\x08")
    while at >= 0:
        if b"gold.json" in inflated(data[at:]):
            print("FOUND", path)
            found += 1
            break
        at = data.find(b"\x1f\x8b\x08", at + 1)
print("LOOKED at", looked, "found", found)
"#;

/// Runs [`HUNT`] on these folders in an attempt, and returns what it prints.
fn hunt(lab: &Lab, name: &str, folders: &str, sandbox: &[&str], adjust: impl FnOnce(&mut Command)) -> String {
    let command = format!("cat > hunt.py <<'END'\n{HUNT}\nEND\npython hunt.py {folders} 2>&1; rm -r planted hunt.py");
    let steps = [
        json!({"tool": "command_line", "arguments": {"command": command}}),
        json!({"tool": "final_answer", "arguments": {"answer": {}}}),
    ];
    let agent = lab.scripted("s", &steps);
    let attempt = ["run", "--sample", "tiny_0", "--agent", &agent, "--no-baseline", "--no-verify", "--name", name];
    let mut command = lab.command(&[&attempt, sandbox].concat());
    adjust(&mut command);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    lab.first_observation(name, "tiny_0")
}

fn is_clean(seen: &str) {
    let found: Vec<&str> = seen.lines().filter(|line| line.starts_with("FOUND")).collect();
    assert!(matches!(found.as_slice(), [plant] if plant.ends_with("planted/program")), "{seen}");
    assert!(seen.contains("LOOKED at") && seen.contains("found 1"), "{seen}");
}

#[test]
fn the_bundled_suite_cannot_be_extracted_from_what_an_agent_can_read() {
    let lab = Lab::new();
    // Search all folders except those with the gigabytes of the system's own libraries and data.
    let folders = "$(ls -d /* | grep -vE '^/(usr|lib.*|proc|sys)$') /usr/local /usr/bin /usr/sbin";
    is_clean(&hunt(&lab, "local", folders, &[], |_| ()));
    // Check that the script can find the suite at all: outside of a sandbox, it can read the program, in which the
    // suite is.
    let place = lab.path("hunted");
    std::fs::create_dir(&place).unwrap();
    std::os::unix::fs::symlink(PROGRAM, place.join("program")).unwrap();
    let done = Command::new("python3").args(["-c", HUNT]).arg(place).current_dir(lab.path("")).output().unwrap();
    let seen = String::from_utf8_lossy(&done.stdout);
    assert!(seen.contains("hunted/program"), "{seen}{}", String::from_utf8_lossy(&done.stderr));
}

/// Makes the same check in a container of an engine. The tests in `forgeries` call this with their engines, because
/// starting an engine takes a minute.
pub fn assert_hidden_in_containers(lab: &Lab, kind: Kind, engine: &Engine) {
    is_clean(&hunt(lab, &format!("hunt-{}", kind.name()), "/", &["--sandbox", kind.name()], |command| {
        command.env(kind.variable(), engine.address());
    }));
}
