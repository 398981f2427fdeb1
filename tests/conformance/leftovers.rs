//! Files that an attempt leaves in its workspace so that the code that reads the workspace afterwards fails. Each is
//! copied or skipped without harm: the sandbox ends normally, and the one honest change among them is kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use autoexperiment::sandbox::{Command, Fault};

use super::fixture::{Fixture, Outcome, limits};
use crate::ensure;

/// Scripts that leave such files in the workspace, each after a name that describes the files.
const LEFT: &[(&str, &str)] = &[
    ("a closed folder", "mkdir d; echo x > d/f; chmod 000 d"),
    ("closed folders in each other", "mkdir -p a/b/c; echo x > a/b/c/f; chmod 000 a/b/c; chmod 000 a/b; chmod 000 a"),
    ("folders that may only be passed", "mkdir p; echo x > p/f; chmod 111 p; mkdir r; echo x > r/f; chmod 444 r"),
    ("a closed file", "echo x > f; chmod 000 f; chmod 000 folder/inner.txt"),
    ("the closed workspace", "chmod 000 ."),
    ("a pipe", "mkfifo pipe folder/pipe; rm folder/inner.txt; mkfifo folder/inner.txt"),
    ("a socket", "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'; true"),
    ("links in circles", "ln -s loop loop; ln -s b a; ln -s a b; ln -s . here; mkdir in; ln -s .. in/up"),
    (
        "links to everywhere",
        "for t in / /proc /proc/self/root /dev/zero /proc/self/fd/0 /etc/passwd; do ln -s $t l$(echo $t | tr / _); done",
    ),
    ("a link in a folder's place", "rm -r folder; ln -s /etc folder"),
    ("a folder in a file's place, with much in it", "mkdir big; for i in 1 2 3; do mkdir big/$i; done; touch big/1/x"),
    ("a file in a folder's place", "rm -r folder; echo x > folder"),
    ("a thousand names of one file", "echo x > one; i=0; while [ $i -lt 1000 ]; do i=$((i+1)); ln one n$i; done"),
    (
        "names that are no text",
        "printf x > \"$(printf 'bad\\377\\376name')\"; printf x > \"$(printf 'new\\nline')\"; printf x > \"$(printf '\\033[2Jclear')\"",
    ),
    (
        "names of 255 control characters",
        "n=$(printf '\\001%.0s' $(seq 255)); echo x > \"$n\"; mkdir \"d$(printf '\\001%.0s' $(seq 254))\"",
    ),
    ("a name that looks like an option", "echo x > -rf; echo x > --; echo x > '*'; echo x > '$(id)'; echo x > '`id`'"),
    ("holes of gigabytes", "truncate -s 60M hole; truncate -s 60M folder/inner.txt"),
    (
        "times beyond any calendar",
        "touch -d 9999-12-31 far; touch -d '1901-12-14' old; touch -d @99999999999 farther; touch -d @-1 before; touch -d 9999-12-31 folder; true",
    ),
    (
        "times from before it began",
        "echo changed > late; touch -d @1000000000 late; echo changed > folder/inner.txt; touch -d @1000000000 folder/inner.txt",
    ),
    (
        "attributes by the hundred",
        "python3 -c 'import os\nopen(\"attributed\", \"w\")\nfor i in range(200):\n  try: os.setxattr(\"attributed\", f\"user.a{i}\", b\"x\" * 10)\n  except OSError: pass'; true",
    ),
    (
        "attributes of the overlay",
        "python3 -c 'import os\nos.mkdir(\"o\")\nfor n in \"opaque redirect whiteout metacopy origin impure nlink upper uuid\".split():\n  for p in \"user.overlay.\", \"trusted.overlay.\", \"user.overlay.overlay.\":\n    for f in \"o\", \"folder\", \".\", \"folder/inner.txt\":\n      try: os.setxattr(f, p + n, b\"y\")\n      except OSError: pass'; true",
    ),
    ("strange permissions", "echo x > s; chmod 7777 s; mkdir t; chmod 7777 t; chmod 1000 folder"),
    (
        "locks",
        "python3 -c 'import fcntl, os, time\nf = open(\"hello.txt\", \"r+\")\nfcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX)\nif os.fork() == 0:\n  os.setsid(); time.sleep(1000)' >/dev/null 2>&1; true",
    ),
    (
        "a lease",
        "python3 -c 'import fcntl, os, signal, time\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\nf = open(\"leased\", \"w\")\ntry: fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nexcept OSError: pass\nif os.fork() == 0:\n  os.setsid(); time.sleep(1000)' >/dev/null 2>&1; true",
    ),
    ("a process that moves folders about", "mkdir x; (while :; do mv x y; mv y x; done) >/dev/null 2>&1 &"),
    ("a process that makes and removes", "(while :; do mkdir q; echo x > q/f; rm -r q; done) >/dev/null 2>&1 &"),
    (
        "a process that opens and closes folders",
        "mkdir z; echo x > z/f; (while :; do chmod 000 z; chmod 700 z; done) >/dev/null 2>&1 &",
    ),
    (
        "a process that exchanges a folder for a link",
        "mkdir e; echo x > e/f; (while :; do mv e e2; ln -s / e; rm e; mv e2 e; done) >/dev/null 2>&1 &",
    ),
    (
        "version control and caches",
        "mkdir -p .git/objects __pycache__; echo x > .git/HEAD; echo x > __pycache__/m.cpython-311.pyc; chmod 000 .git",
    ),
    ("a removed working folder", "mkdir w; cd w; rmdir ../w; (sleep 1000 >/dev/null 2>&1 &)"),
    ("everything removed", "rm -rf ./* .[a-z]*; true"),
];

/// Runs each of these scripts in a sandbox of its own.
async fn leave(fixture: &mut Fixture<'_>, left: &[(&str, &str)]) -> Outcome {
    let mut wrong = Vec::new();
    for (name, script) in left {
        let mut inside = fixture.start().await?;
        let written = inside.written.clone();
        let place = inside.sandbox.workdir().display().to_string();
        // If the script makes later changes impossible, make the honest change before the script, otherwise after it.
        let (first, last) = match *name {
            "the closed workspace" => ("echo honest > honest.txt", ""),
            _ => ("", "cd \"$PLACE\"; echo honest > honest.txt"),
        };
        let script = format!("PLACE='{place}'\n{first}\n{script}\n{last}");
        let done = inside.exec(Command::shell(&script), limits(20.0)).await?;
        if !done.success() {
            wrong.push(format!("{name}: {:?} {}", done.exit, String::from_utf8_lossy(&done.stderr)));
        }
        // The file tools may refuse, but the sandbox must not be lost.
        for path in ["hello.txt", "folder/inner.txt", "leased", "e/f", "."] {
            if let Err(fault @ Fault::Lost(_)) = inside.read(path).await {
                wrong.push(format!("{name}: reading {path}: {fault}"));
            }
            if let Err(fault @ Fault::Lost(_)) = inside.sandbox.list(Path::new(path)).await {
                wrong.push(format!("{name}: listing {path}: {fault}"));
            }
        }
        if let Err(error) = inside.end().await {
            wrong.push(format!("{name}: {error}"));
            continue;
        }
        let _ = fs::set_permissions(&written, fs::Permissions::from_mode(0o755));
        if fs::read(written.join("honest.txt")).ok().as_deref() != Some(b"honest\n") {
            wrong.push(format!("{name}: the honest change is lost"));
        }
    }
    ensure!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), left.len());
    Ok(())
}

crate::cases! {
    unreadable_and_special_files_left_behind_do_no_harm(fixture) {
        leave(fixture, &LEFT[..10]).await?;
    }

    odd_names_times_and_attributes_left_behind_do_no_harm(fixture) {
        leave(fixture, &LEFT[10..21]).await?;
    }

    processes_and_locks_left_behind_do_not_disturb_who_reads_it(fixture) {
        leave(fixture, &LEFT[21..]).await?;
    }
}
