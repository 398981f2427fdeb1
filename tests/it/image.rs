//! A program that is killed while it makes a base image must not leave an incomplete image under the base's name.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::Lab;
use crate::support::engine::{Engine, Kind, on_engines};

on_engines! {
    docker: a_build_that_is_killed_leaves_no_part_of_a_base_under_its_name;
    podman: a_build_that_is_killed_leaves_no_part_of_a_base_under_its_name;
}

/// The image that the base is made from, large enough that making it takes a while.
const SOURCE: &str = "localhost/plain:1";

fn a_build_that_is_killed_leaves_no_part_of_a_base_under_its_name(kind: Kind) {
    let engine = Engine::start(kind);
    let lab = Lab::bare();
    let archive = lab.path("plain.tar");
    let mut plain = tar::Builder::new(fs::File::create(&archive).unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_size(96 << 20);
    header.set_mode(0o644);
    plain.append_data(&mut header, "filler", std::io::Read::take(std::io::repeat(0), 96 << 20)).unwrap();
    plain.finish().unwrap();
    engine.say(&["import", &archive.display().to_string(), SOURCE]);
    fs::remove_file(archive).unwrap();

    let build = || {
        let mut command = lab.command(&["image", "build", "--engine", kind.name()]);
        command.env(kind.variable(), engine.address()).env("AUTOEXPERIMENT_BASE_IMAGE", SOURCE);
        command
    };
    let names = || {
        let said = engine.say(&["image", "ls", "--format", "{{.Repository}}:{{.Tag}}"]);
        said.lines().filter(|name| name.contains("/base:")).map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let is_base = |name: &&String| !name.ends_with("-unfinished");
    let mut killed = 0;
    for wait in [0, 100, 300, 900] {
        let mut child = build().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Wait until the build has created a container. From then on, the program reads the source image's files and
        // sends them back to the engine.
        let begun = Instant::now();
        while engine.say(&["ps", "-aq"]).is_empty() && child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_mins(5), "{}: nothing is built", kind.name());
        }
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        for base in names().iter().filter(is_base) {
            assert_whole(&engine, base);
            engine.say(&["image", "rm", base]);
        }
    }
    let made = build().output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let names = names();
    let name = String::from_utf8(made.stdout).unwrap();
    assert_eq!(names, [name.trim()], "{}: only the base has a name", kind.name());
    assert_whole(&engine, &names[0]);
    assert_eq!(engine.say(&["ps", "-aq"]), "", "{}", kind.name());
    println!("{}: killed {killed} times, no part of a base was left", kind.name());
}

/// Checks that the last file of a base is there.
fn assert_whole(engine: &Engine, base: &str) {
    let container = engine.say(&["create", base, "true"]);
    let copied = engine.cli(&["cp", &format!("{container}:/etc/nsswitch.conf"), "-"]);
    engine.say(&["rm", &container]);
    assert!(copied.0 && copied.1.contains("hosts: files"), "`{base}` is a part of a base: {copied:?}");
}
