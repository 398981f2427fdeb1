//! Pseudo-terminals: each sandbox has its own, and only a few.

use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use autoexperiment::sandbox::Exit;
use nix::libc;
use nix::pty::{ForkptyResult, forkpty, openpty};
use nix::sys::signal::{SigHandler, Signal, signal};

use super::fixture::limits;
use super::runner::survivors;
use crate::ensure;

/// Maximum number of terminals of a sandbox.
const MOST: usize = 64;
/// Number of terminals that the hostile action tries to open.
const WANTED: usize = 400;

crate::cases! {
    a_program_gets_a_terminal_and_can_make_it_the_one_that_controls_its_session(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["terminals", "talk"], limits(20.0)).await?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        ensure!(
            said == "wrote hi to /dev/pts/0\nasked: true /dev/pts/0 true\nanswered: yes\n",
            "{said:?} {}", String::from_utf8_lossy(&done.stderr)
        );
        // Closed terminals are gone.
        ensure!(inside.say("ls /dev/pts").await? == "ptmx", "a terminal is left");
        let python = "command -v python3 > /dev/null || exit 0; python3 -I -c 'import os, pty; print(os.ttyname(pty.openpty()[1]))'";
        let said = inside.say(python).await?;
        ensure!(said.is_empty() || said == "/dev/pts/0", "{said}");
        inside.end().await?;
    }

    terminals_of_the_host_and_of_other_sandboxes_do_not_exist(fixture) {
        let host = openpty(None, None).map_err(|error| error.to_string())?;
        let (mut one, mut other) = (fixture.start().await?, fixture.start().await?);
        let hold = format!(
            "'{}' hostile terminals hold > held 2> /dev/null & for i in $(seq 100); do test -s held && break; sleep 0.05; \
             done; ls /dev/pts",
            one.exe.display()
        );
        let own = one.say(&hold).await?;
        ensure!(own == "0\n1\nptmx" || own.contains("Permission denied"), "{own}");
        let seen = other.say("ls /dev/pts").await?;
        ensure!(seen == "ptmx" || seen.contains("Permission denied"), "{seen}");
        // Landlock alone does not hide the names of terminals, but it refuses to open them.
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
        let done = inside.hostile(&["terminals", "hoard"], limits(20.0)).await?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let got = said.trim().parse::<usize>();
        ensure!(
            matches!(done.exit, Exit::Signal(9)) || got.as_ref().is_ok_and(|got| *got <= MOST),
            "{said} {:?} {}", done.exit, String::from_utf8_lossy(&done.stderr)
        );
        inside.works().await?;
        // After the first command has ended, all its terminals are free, so a second command gets as many.
        let again = inside.hostile(&["terminals", "hoard"], limits(20.0)).await?;
        ensure!(again.exit == done.exit && again.stdout == done.stdout, "{again:?}");
        inside.end().await?;
    }

    a_session_with_its_own_terminal_ends_with_its_command_s_time_limit(fixture) {
        let mut inside = fixture.start().await?;
        let begun = Instant::now();
        let done = inside.hostile(&["terminals", "stay"], limits(0.8)).await?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        ensure!(done.exit == Exit::TimedOut, "{said} {:?}", done.exit);
        ensure!(begun.elapsed() < Duration::from_secs(4), "took {:?}", begun.elapsed());
        let left: Vec<_> = survivors(&fixture.marker).into_iter().filter(|line| line.contains("terminals")).collect();
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

/// Runs the action on terminals that has this name.
pub fn act(way: &str) -> ExitCode {
    let result = match way {
        "talk" => talk(),
        "stay" => stay(),
        "hold" => hold(),
        _ => return hoard(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("no terminal: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Uses a terminal directly, then lets a child ask a question on the terminal that controls its session.
fn talk() -> io::Result<()> {
    let pair = openpty(None, None)?;
    let mut buffer = [0; 200];
    nix::unistd::write(&pair.slave, b"hi")?;
    let count = nix::unistd::read(&pair.master, &mut buffer)?;
    let path = nix::unistd::ttyname(&pair.slave)?;
    println!("wrote {} to {}", String::from_utf8_lossy(&buffer[..count]), path.display());
    drop(pair);
    // SAFETY: this process has one thread.
    match unsafe { forkpty(None, None) }? {
        ForkptyResult::Child => {
            let (own, group) = (nix::unistd::getpid(), nix::unistd::tcgetpgrp(io::stdin()).ok());
            let path = nix::unistd::ttyname(io::stdin()).unwrap_or_default();
            println!("asked: {} {} {}", io::stdin().is_terminal(), path.display(), group == Some(own));
            let mut line = String::new();
            let controlling = File::options().read(true).write(true).open("/dev/tty");
            let read = controlling.and_then(|terminal| io::BufReader::new(terminal).read_line(&mut line));
            println!("answered: {}", if read.is_ok() { line.trim() } else { "no" });
            std::process::exit(0);
        }
        ForkptyResult::Parent { child, master } => {
            let (mut master, mut said, mut is_answered) = (File::from(master), String::new(), false);
            while let Ok(count @ 1..) = master.read(&mut buffer) {
                said.push_str(&String::from_utf8_lossy(&buffer[..count]));
                if said.contains("asked: ") && said.ends_with('\n') && !is_answered {
                    is_answered = true;
                    master.write_all(b"yes\n")?;
                }
            }
            nix::sys::wait::waitpid(child, None)?;
            // Leave out the answer, which the terminal echoes.
            for line in said.lines().filter(|line| *line != "yes") {
                println!("{}", line.trim_end());
            }
            Ok(())
        }
    }
}

/// Starts a child that has its own session and terminal and ignores HUP, TERM and INT, and waits for it.
fn stay() -> io::Result<()> {
    // SAFETY: this process has one thread.
    if let ForkptyResult::Parent { child, master } = unsafe { forkpty(None, None) }? {
        nix::sys::wait::waitpid(child, None)?;
        drop(master);
        return Ok(());
    }
    for name in [Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT] {
        // SAFETY: ignoring a signal runs no code.
        unsafe { signal(name, SigHandler::SigIgn) }?;
    }
    std::thread::sleep(Duration::from_secs(1000));
    Ok(())
}

/// Keeps two terminals.
fn hold() -> io::Result<()> {
    let _pairs = (openpty(None, None)?, openpty(None, None)?);
    println!("held");
    std::thread::sleep(Duration::from_secs(1000));
    Ok(())
}

/// Opens terminals until the kernel refuses, fills their buffers, keeps them for longer than the time between two
/// checks by the init, and prints their number.
fn hoard() -> ExitCode {
    let mut kept = Vec::new();
    while kept.len() < WANTED
        && let Ok(pair) = openpty(None, None)
    {
        // Fill the terminal in both directions with data that nobody reads.
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

/// Makes requests that must be refused, because they push input into a terminal, reach the console or load modules, and
/// one request that programs need. Prints the results.
pub fn request() -> ExitCode {
    let pair = match openpty(None, None) {
        Ok(pair) => pair,
        Err(error) => {
            println!("no terminal: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Make the slave the terminal that controls this session, because pushing input into this terminal needs no
    // privilege.
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
