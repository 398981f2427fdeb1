//! Gold, the original code, the user's home and environment, and other sandboxes are hidden.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use autoexperiment::sandbox::Command;

use super::fixture::{limits, refused};
use crate::ensure;

/// Returns the prefix and the program of the first `python3`.
pub fn interpreter() -> Option<(PathBuf, PathBuf)> {
    let code = "import sys; print(sys.base_prefix); print(sys.executable)";
    let said = std::process::Command::new("python3").args(["-I", "-c", code]).output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (prefix, program) = said.trim().split_once('\n')?;
    Some((prefix.into(), program.into()))
}

crate::cases! {
    gold_original_and_home_cannot_be_read(fixture) {
        let host = fixture.host.path().to_path_buf();
        std::fs::set_permissions(&host, PermissionsExt::from_mode(0o777)).unwrap();
        let mut inside = fixture.start().await?;
        for name in ["gold.json", "original.py", "home/secret"] {
            let path = host.join(name);
            let said = inside.say(&format!("cat {0}; cat /proc/1/root{0}; cat /proc/self/root{0}; cat ../../../../../..{0}", path.display())).await?;
            ensure!(!said.contains("SECRET"), "{name}: {said}");
            ensure!(refused(&inside.read(path.to_str().unwrap()).await), "{name} was read");
            let up = format!("../../../../../../../..{}", path.display());
            ensure!(refused(&inside.read(&up).await), "{name} was read by ..");
        }
        ensure!(refused(&inside.sandbox.list(&host).await), "the folder was listed");
        inside.end().await?;
    }

    the_host_s_files_do_not_even_exist(fixture) {
        let mut inside = fixture.start().await?;
        let host = fixture.host.path().display();
        let said = inside.say(&format!("test -e {host}/gold.json && echo there; ls -d /home /root /mnt /boot /etc/shadow 2>/dev/null")).await?;
        ensure!(said.is_empty(), "{said}");
        inside.end().await?;
    }

    secrets_of_the_system_cannot_be_read(fixture) {
        let mut inside = fixture.start().await?;
        for path in ["/etc/shadow", "/root/.bashrc", "/root/.ssh", "/home", "/proc/kcore", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda"] {
            let said = inside.say(&format!("head -c 10 {path} 2>/dev/null; ls -A {path}/ 2>/dev/null")).await?;
            ensure!(said.is_empty(), "{path}: {said}");
        }
        inside.end().await?;
    }

    the_environment_holds_only_what_was_given(fixture) {
        let mut inside = fixture.start().await?;
        let said = inside.say("env | cut -d= -f1 | sort | tr '\\n' ' '").await?;
        let unexpected: Vec<_> = said
            .split_whitespace()
            .filter(|name| !["HOME", "LANG", "MARKER", "PATH", "PWD", "TMPDIR", "USER", "_", "AUTOEXPERIMENT_SANDBOX"].contains(name))
            .collect();
        ensure!(unexpected.is_empty(), "{unexpected:?}");
        let mut command = Command::shell("echo $COLOUR $MARKER");
        command.variables.insert("COLOUR".into(), "blue".into());
        let done = inside.exec(command, limits(5.0)).await?;
        ensure!(done.stdout == format!("blue {}\n", fixture.marker).into_bytes(), "{done:?}");
        inside.end().await?;
    }

    locale_and_clock_are_usable_but_fixed(fixture) {
        let mut inside = fixture.start().await?;
        ensure!(inside.say("echo $LANG").await? == "C.UTF-8", "no locale");
        let said = inside.say("date -s 2001-01-01 >/dev/null 2>&1 && echo escaped; date +%Y").await?;
        ensure!(said.parse::<u32>().is_ok_and(|year| year > 2020), "{said}");
        inside.end().await?;
    }

    nothing_is_inherited_from_the_harness(fixture) {
        use std::os::fd::AsRawFd;
        // Leave a file open without close-on-exec, as a careless library might.
        let secret = std::fs::File::open(fixture.host.path().join("gold.json")).unwrap();
        let leaked = unsafe { nix::libc::dup(secret.as_raw_fd()) };
        let mut inside = fixture.start().await?;
        let said = inside.say(&format!("cat <&{leaked} 2>/dev/null; for n in 3 4 5 6 7 8 9; do cat <&$n 2>/dev/null; done")).await?;
        unsafe { nix::libc::close(leaked) };
        ensure!(!said.contains("SECRET"), "{said}");
        inside.end().await?;
    }

    the_host_s_processes_are_invisible(fixture) {
        let mut inside = fixture.start().await?;
        let mut visible = std::process::Command::new("sleep").arg("86321").spawn().unwrap();
        let said = inside.say("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; ps ax 2>/dev/null").await;
        let exists = inside.say(&format!("test -e /proc/{} && echo there", visible.id())).await;
        visible.kill().and_then(|()| visible.wait()).unwrap();
        ensure!(!said?.contains("86321"), "its command line can be read");
        ensure!(exists?.is_empty(), "its existence can be seen");
        inside.end().await?;
    }

    a_sandbox_cannot_see_another_s_files(fixture) {
        let mut one = fixture.start().await?;
        let mut two = fixture.start().await?;
        one.sh("echo mine > secret; echo mine > /tmp/secret; echo mine > $HOME/secret").await?;
        let theirs = one.written.join("secret");
        let said = two.say(&format!("cat secret /tmp/secret $HOME/secret {} 2>/dev/null; find / -name secret 2>/dev/null", theirs.display())).await?;
        ensure!(said.is_empty(), "{said}");
        one.end().await?;
        two.end().await?;
    }

    a_sandbox_cannot_see_another_s_processes(fixture) {
        let mut one = fixture.start().await?;
        let mut two = fixture.start().await?;
        one.sh("sleep 987 & echo $! > pid").await?;
        let said = two.say("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '").await?;
        ensure!(!said.contains("sleep 987"), "{said}");
        let said = two.say("for d in /proc/[0-9]*; do test -d $d && echo $d; done | wc -l").await?;
        ensure!(said.parse::<u32>().is_ok_and(|count| count < 8), "{said} processes");
        two.hostile(&["kill-group-of-all"], limits(5.0)).await?;
        ensure!(one.say("kill -0 $(cat pid) && echo there").await? == "there", "it was killed");
        one.end().await?;
        two.end().await?;
    }

    shared_memory_is_private_to_a_sandbox_and_usable(fixture) {
        let mut one = fixture.start().await?;
        let mut two = fixture.start().await?;
        ensure!(one.say("echo mine > /dev/shm/secret && cat /dev/shm/secret").await? == "mine", "not usable");
        ensure!(two.say("ls -A /dev/shm").await?.is_empty(), "shared");
        one.end().await?;
        two.end().await?;
    }

    the_user_inside_has_a_name_and_a_writable_home(fixture) {
        let mut inside = fixture.start().await?;
        let said = inside.say("id -un; cd && echo x > file && cat file").await?;
        ensure!(said == "sandbox\nx", "named {said}");
        inside.end().await?;
    }

    read_only_folders_are_seen_at_their_own_path_and_cannot_be_written(fixture) {
        let shown = fixture.host.path().join("shown");
        std::fs::create_dir(&shown).unwrap();
        std::fs::write(shown.join("library.py"), "useful").unwrap();
        std::fs::set_permissions(fixture.host.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&shown, PermissionsExt::from_mode(0o777)).unwrap();
        let (mut spec, _) = fixture.spec();
        spec.read_only.push(shown.clone());
        let mut sandbox = fixture.backend.start(&spec).await.map_err(|error| error.to_string())?;
        let script = format!("cat {0}/library.py; echo x > {0}/library.py; echo x > {0}/new; rm -f {0}/library.py", shown.display());
        let done = sandbox.exec(&Command::shell(&script), &limits(5.0)).await.map_err(|fault| fault.to_string())?;
        ensure!(done.stdout == b"useful", "{done:?}");
        sandbox.destroy().await.map_err(|fault| fault.to_string())?;
        ensure!(std::fs::read(shown.join("library.py")).is_ok_and(|bytes| bytes == b"useful"), "it was changed");
        ensure!(!shown.join("new").exists(), "it was added to");
    }

    a_hidden_folder_in_a_shown_one_cannot_be_seen(fixture) {
        let shown = fixture.host.path().join("prefix");
        let at = |name: &str| shown.join(name);
        for folder in ["lib", "src/suite/papers", "cache/env", "cache/snapshots"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for (file, text) in [
            ("lib/useful.py", "useful"),
            ("src/other.py", "useful"),
            ("cache/env/useful.py", "useful"),
            ("src/suite/papers/gold.json", "TOP SECRET"),
            ("cache/snapshots/original.py", "TOP SECRET"),
        ] {
            std::fs::write(at(file), text).unwrap();
        }
        std::fs::set_permissions(fixture.host.path(), PermissionsExt::from_mode(0o755)).unwrap();
        // Name a hidden folder by a link to it, as if the home were a link to another disk.
        let link = fixture.host.path().join("link");
        std::os::unix::fs::symlink(at("src/suite"), &link).unwrap();
        let (mut spec, _) = fixture.spec();
        spec.read_only.extend([shown.clone(), at("cache/env")]);
        spec.hidden = vec![link.clone(), at("src/suite/papers"), at("cache"), fixture.host.path().to_path_buf()];
        let told = |error: &autoexperiment::error::Error, hidden: &std::path::Path| {
            error.kind == autoexperiment::error::FailureKind::Machine
                && [hidden, &shown].iter().all(|path| error.message.contains(&path.display().to_string()))
        };
        match fixture.backend.start(&spec).await {
            Ok(mut sandbox) => {
                let script = format!(
                    "cd {0} && cat lib/useful.py src/other.py cache/env/useful.py; grep -r SECRET {0} {1} /workspace; \
                     find {0} -name '*.json' -o -name original.py; touch {0}/cache/x {0}/src/suite/x 2>/dev/null && echo written",
                    shown.display(), link.display(),
                );
                let done = sandbox.exec(&Command::shell(&script), &limits(10.0)).await.map_err(|fault| fault.to_string())?;
                let said = String::from_utf8_lossy(&done.stdout).into_owned();
                // By landlock alone, names in a hidden folder can be listed, but its files cannot be read.
                let said = said.lines().next().unwrap_or_default();
                let names = fixture.backend.name() == "landlock" || done.stdout.len() == said.len();
                ensure!(said.starts_with("usefulusefuluseful") && names, "{said} {}", String::from_utf8_lossy(&done.stderr));
                ensure!(!String::from_utf8_lossy(&done.stdout).contains("SECRET"), "it was read");
                // By landlock alone, `touch` reports that it has set the times of files that it could not create.
                let echoed = fixture.backend.name() != "landlock" && done.stdout.ends_with(b"written\n");
                ensure!(!echoed && !at("cache/x").exists() && !at("src/suite/x").exists(), "it was written");
                sandbox.destroy().await.map_err(|fault| fault.to_string())?;
            }
            Err(error) => return Err(error.to_string()),
        }
        // A sandbox with a folder that is both shown and hidden is refused.
        spec.hidden = vec![shown.clone()];
        ensure!(fixture.backend.start(&spec).await.is_err_and(|error| told(&error, &shown)), "it was shown");
    }

    an_interpreter_that_lives_in_a_home_works(fixture) {
        let (prefix, program) = interpreter().ok_or("there is no python3")?;
        let (mut spec, _) = fixture.spec();
        spec.read_only.push(prefix);
        let mut sandbox = fixture.backend.start(&spec).await.map_err(|error| error.to_string())?;
        let code = "import json, hashlib, random, subprocess, tempfile, threading\n\
                    t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n\
                    tempfile.TemporaryFile().write(b'x')\n\
                    print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout, sum(range(10)))";
        let command = Command { argv: vec![program.into(), "-c".into(), code.into()], ..Command::default() };
        let done = sandbox.exec(&command, &limits(20.0)).await.map_err(|fault| fault.to_string())?;
        ensure!(done.stdout == b"thread\nchild\n 45\n", "{} {}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        sandbox.destroy().await.map_err(|fault| fault.to_string())?;
    }
}
