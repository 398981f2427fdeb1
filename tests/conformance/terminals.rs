//! Pseudo-terminals: each sandbox has its own, and only a few.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use autoexperiment::sandbox::{Command, Exit};
use nix::libc;
use nix::pty::openpty;

use super::fixture::limits;
use super::runner::survivors;
use crate::ensure;

/// Maximum number of terminals of a sandbox.
const MOST: usize = 64;
/// Number of terminals that the hostile action tries to open.
const WANTED: usize = 400;

/// Python code that runs a child in a session with a terminal of its own; `CHILD` is the child's code.
const IN_A_SESSION: &str = r"
import os, pty, sys
try:
    pid, terminal = pty.fork()
except OSError as error:
    sys.exit(f'no terminal: {error}')
if pid == 0:
    CHILD
    os._exit(0)
said = b''
while True:
    try:
        part = os.read(terminal, 1000)
    except OSError:
        break
    if not part:
        break
    said += part
    if b'?' in part:
        os.write(terminal, b'yes\n')
os.waitpid(pid, 0)
print(said.decode())
";

fn in_a_session(child: &str) -> Command {
    let code = IN_A_SESSION.replace("CHILD", &child.replace('\n', "\n    "));
    Command { argv: vec!["/usr/bin/python3".into(), "-I".into(), "-c".into(), code.into()], ..Command::default() }
}

crate::cases! {
    a_program_gets_a_terminal_and_can_make_it_the_one_that_controls_its_session(fixture) {
        let mut inside = fixture.start().await?;
        let code = "import os\ntry:\n  one, other = os.openpty()\nexcept OSError as error:\n  exit(f'no terminal: {error}')\n\
                    os.write(other, b'hi'); print(os.ttyname(other), os.read(one, 9).decode())";
        let said = inside.say(&format!("python3 -I -c \"{code}\"")).await?;
        ensure!(said == "/dev/pts/0 hi", "{said}");
        // The child asks on its own terminal and reads the reply there.
        let child = "print(os.isatty(0), os.ttyname(1), os.tcgetpgrp(0) == os.getpid(), input('ready?'), open('/dev/tty').name, flush=True)";
        let done = inside.exec(in_a_session(child), limits(20.0)).await?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        ensure!(said.contains("True /dev/pts/0 True yes /dev/tty"), "{said:?} {done:?}");
        // Closed terminals are gone.
        ensure!(inside.say("ls /dev/pts").await? == "ptmx", "a terminal is left");
        inside.end().await?;
    }

    terminals_of_the_host_and_of_other_sandboxes_do_not_exist(fixture) {
        let host = openpty(None, None).map_err(|error| error.to_string())?;
        let (mut one, mut other) = (fixture.start().await?, fixture.start().await?);
        let hold = "python3 -I -c 'import os, time; os.openpty(); os.openpty(); print(1, flush=True); time.sleep(1000)' \
                    > held 2> /dev/null & for i in $(seq 100); do test -s held && break; sleep 0.05; done; ls /dev/pts";
        let own = one.say(hold).await?;
        ensure!(own == "0\n1\nptmx" || own.contains("Permission denied"), "{own}");
        let seen = other.say("ls /dev/pts").await?;
        ensure!(seen == "ptmx" || seen.contains("Permission denied"), "{seen}");
        // Landlock hides no names, but opens nothing.
        let host_s = nix::unistd::ttyname(&host.slave).map_err(|error| error.to_string())?;
        for path in ["/dev/pts/0", "/dev/pts/1", "/dev/console", &host_s.display().to_string()] {
            let said = other.say(&format!("(: < {path}) && echo opened; (: > {path}) && echo opened")).await?;
            ensure!(!said.contains("opened"), "{path}: {said}");
        }
        one.end().await?;
        other.end().await?;
    }

    terminals_are_limited(fixture) {
        fixture.limits.memory = 256 << 20;
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["terminals"], limits(20.0)).await?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let got = said.trim().parse::<usize>();
        ensure!(
            matches!(done.exit, Exit::Signal(9)) || got.as_ref().is_ok_and(|got| *got <= MOST),
            "{said} {:?} {}", done.exit, String::from_utf8_lossy(&done.stderr)
        );
        inside.works().await?;
        // All of them are free again.
        let again = inside.hostile(&["terminals"], limits(20.0)).await?;
        ensure!(again.exit == done.exit && again.stdout == done.stdout, "{again:?}");
        inside.end().await?;
    }

    a_session_with_its_own_terminal_ends_with_its_command_s_time_limit(fixture) {
        let mut inside = fixture.start().await?;
        let begun = Instant::now();
        let child = "import signal\nfor name in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT): signal.signal(name, signal.SIG_IGN)\n\
                     os.execvp('sleep', ['sleep', '1000'])";
        let done = inside.exec(in_a_session(child), limits(0.8)).await?;
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        ensure!(done.exit == Exit::TimedOut, "{said} {:?}", done.exit);
        ensure!(begun.elapsed() < Duration::from_secs(4), "took {:?}", begun.elapsed());
        let left: Vec<_> = survivors(&fixture.marker).into_iter().filter(|line| line.contains("sleep")).collect();
        ensure!(left.is_empty(), "{left:?}");
        inside.works().await?;
        ensure!(inside.say("ls /dev/pts").await? == "ptmx", "a terminal is left");
        inside.end().await?;
    }

    requests_that_reach_beyond_a_terminal_are_refused(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["terminal-requests"], limits(20.0)).await?;
        let said = [done.stdout, done.stderr].concat();
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        ensure!(said == "input EPERM, console EPERM, discipline EPERM, size 0", "{said}");
        inside.end().await?;
    }
}

/// Opens terminals until the kernel refuses, keeps them for longer than a watch takes, and prints their number.
pub fn act() -> ExitCode {
    let mut kept = Vec::new();
    while kept.len() < WANTED
        && let Ok(pair) = openpty(None, None)
    {
        // Data waits in both directions.
        for end in [&pair.master, &pair.slave] {
            let _ = rustix::io::ioctl_fionbio(end, true);
            while nix::unistd::write(end, &[b'x'; 1000]).is_ok_and(|count| count > 0) {}
        }
        kept.push(pair);
    }
    std::thread::sleep(Duration::from_secs(2));
    println!("{}", kept.len());
    ExitCode::SUCCESS
}

/// Makes requests that push input into a terminal, reach the console or load modules, and one that programs need.
pub fn request() -> ExitCode {
    let pair = match openpty(None, None) {
        Ok(pair) => pair,
        Err(error) => {
            println!("no terminal: {error}");
            return ExitCode::FAILURE;
        }
    };
    // The slave becomes the terminal that controls this session, so that input could be pushed without a privilege.
    let _ = nix::unistd::setsid();
    let terminal = File::from(pair.slave);
    let ask = |request: libc::Ioctl, value: *const libc::c_void| {
        // SAFETY: the requests read or write at most the struct that `value` points to.
        if unsafe { libc::ioctl(terminal.as_raw_fd(), request, value) } < 0 {
            format!("{:?}", nix::errno::Errno::from_raw(io::Error::last_os_error().raw_os_error().unwrap_or(0)))
        } else {
            "0".to_owned()
        }
    };
    ask(libc::TIOCSCTTY, std::ptr::null());
    let (input, console, discipline) = (b'x', 4_u8, 2_i32);
    let size = libc::winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    println!(
        "input {}, console {}, discipline {}, size {}",
        ask(libc::TIOCSTI, (&raw const input).cast()),
        ask(libc::TIOCLINUX, (&raw const console).cast()),
        ask(libc::TIOCSETD, (&raw const discipline).cast()),
        ask(libc::TIOCSWINSZ, (&raw const size).cast()),
    );
    ExitCode::SUCCESS
}
