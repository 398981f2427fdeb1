//! Attacks on the bundled suite, which the program contains in compressed form: an agent searches everything that it can read
//! for gold.

use serde_json::{Value, json};

use crate::support::engine::{Engine, Kind};
use crate::support::{Lab, PROGRAM, json_lines};

/// A script that inflates every gzip stream in files that can be read and prints the paths of those with gold inside. It
/// first plants one, which shows that the search works.
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

/// Returns what the hunt through these folders prints in an attempt.
fn hunt(
    lab: &Lab,
    name: &str,
    folders: &str,
    arguments: &[&str],
    adjust: &dyn Fn(&mut std::process::Command),
) -> String {
    lab.write("hunt.py", HUNT);
    let command = format!("cat > hunt.py <<'END'\n{HUNT}\nEND\npython hunt.py {folders} 2>&1; rm -r planted hunt.py");
    let steps = [
        json!({"tool": "command_line", "arguments": {"command": command}}),
        json!({"tool": "final_answer", "arguments": {"answer": {}}}),
    ];
    lab.write("s", &json_lines(&steps));
    let agent = format!("scripted:{}", lab.path("s").display());
    let arguments = [&["run", "--agent", &agent, "--no-baseline", "--no-verify", "--name", name], arguments].concat();
    let mut command = lab.command(&arguments);
    adjust(&mut command);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let trajectories = lab.path(&format!("runs/{name}/trajectories/scripted"));
    let trajectory = std::fs::read_dir(trajectories).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(trajectory).unwrap();
    let mut events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let observation = events.find(|line| line["event"] == "observation").unwrap();
    observation["content"].as_str().unwrap().to_owned()
}

fn is_clean(seen: &str) {
    let found: Vec<&str> = seen.lines().filter(|line| line.starts_with("FOUND")).collect();
    assert!(matches!(found.as_slice(), [plant] if plant.ends_with("planted/program")), "{seen}");
    assert!(seen.contains("LOOKED at") && seen.contains("found 1"), "{seen}");
}

#[test]
fn the_bundled_suite_cannot_be_extracted_from_what_an_agent_can_read() {
    let lab = Lab::new();
    // Without the gigabytes of the system's own libraries and data.
    let folders = "$(ls -d /* | grep -vE '^/(usr|lib.*|proc|sys)$') /usr/local /usr/bin /usr/sbin";
    is_clean(&hunt(&lab, "local", folders, &["--sample", "tiny_0"], &|_| ()));
    // The same script finds the suite in the program where it can read the program.
    let folder = std::path::Path::new(PROGRAM).parent().unwrap();
    let place = lab.path("hunted");
    std::fs::create_dir(&place).unwrap();
    std::fs::hard_link(PROGRAM, place.join("program"))
        .or_else(|_| std::fs::copy(PROGRAM, place.join("program")).map(drop))
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let done = std::process::Command::new("python3")
        .args([lab.path("hunt.py"), place])
        .current_dir(lab.path(""))
        .output()
        .unwrap();
    let seen = String::from_utf8_lossy(&done.stdout);
    assert!(seen.contains("hunted/program"), "{seen}{}", String::from_utf8_lossy(&done.stderr));
}

/// The same in containers; the forgeries' engines run it, because starting an engine takes a minute.
pub fn assert_hidden_in_containers(lab: &Lab, kind: Kind, engine: &Engine) {
    let adjust = |command: &mut std::process::Command| {
        command.env(kind.variable(), engine.address());
    };
    let arguments = ["--sample", "tiny_0", "--sandbox", kind.name()];
    is_clean(&hunt(lab, &format!("hunt-{}", kind.name()), "/", &arguments, &adjust));
}
