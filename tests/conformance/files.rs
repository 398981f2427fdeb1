//! Files: which may be written, odd names, and links, fifos and devices that try to lead outside.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::{Duration, Instant};

use autoexperiment::sandbox::{Command, EntryKind, Exit};
use autoexperiment::workspace::LayersKind;

use super::fixture::{MIB, limits, refused};
use crate::ensure;

crate::cases! {
    the_workspace_can_be_read_changed_and_extended(fixture) {
        let mut inside = fixture.start().await?;
        let said = inside.say("cat hello.txt folder/inner.txt; echo new > folder/new; echo more >> hello.txt; rm folder/inner.txt; mv folder moved; ls moved; cat hello.txt").await?;
        ensure!(said == "helloinnernew\nhellomore", "{said}");
        ensure!(inside.read("hello.txt").await.is_ok_and(|bytes| bytes == b"hellomore\n"), "read");
        inside.end().await?;
    }

    writes_reach_the_host_only_in_the_workspace(fixture) {
        let mut inside = fixture.start().await?;
        let written = inside.written.clone();
        inside.sh("echo kept > kept").await?;
        for path in ["/usr/escape", "/etc/escape", "/escape", "/proc/escape", "/dev/escape", "/bin/escape", "/var/escape",
            "/run/escape", "/home/escape"]
        {
            let said = inside.say(&format!("(echo x > {path}) 2>/dev/null && echo escaped; mkdir {path} 2>/dev/null && echo escaped")).await?;
            ensure!(said.is_empty(), "{path}: {said}");
            ensure!(refused(&inside.write(path, b"x").await), "{path} was written");
            ensure!(!Path::new(path).exists(), "{path} is on the host");
        }
        let outside = fixture.host.path().join("escape");
        let _ = inside.write(outside.to_str().unwrap(), b"x").await;
        let _ = inside.sh(&format!("echo x > {0}; echo x > ../../../../../..{0}", outside.display())).await?;
        ensure!(!outside.exists(), "it was written to the host");
        inside.end().await?;
        ensure!(std::fs::read(written.join("kept")).is_ok_and(|bytes| bytes == b"kept\n"), "it did not arrive");
    }

    files_outside_keep_their_permissions_owner_times_and_attributes(fixture) {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let file = fixture.host.path().join("outside");
        fs::write(&file, "outside").unwrap();
        if let Some((uid, gid)) = fixture.backend.owner() {
            std::os::unix::fs::chown(&file, Some(uid), Some(gid)).unwrap();
        }
        for path in [&file, fixture.host.path()] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let before = fs::metadata(&file).unwrap();
        let (mut spec, written) = fixture.spec();
        // A file that all attempts share, like the files of an env.
        spec.read_only.push(file.clone());
        let started = fixture.backend.start(&spec).await.map_err(|error| error.to_string());
        let mut inside = super::fixture::Inside { sandbox: started?, exe: fixture.exe.clone(), written };
        inside.hostile(&["tamper", file.to_str().unwrap()], super::fixture::limits(5.0)).await?;
        inside.end().await?;
        let after = fs::metadata(&file).unwrap();
        let told = |about: &fs::Metadata| (about.mode(), about.uid(), about.gid(), about.mtime(), about.mtime_nsec());
        ensure!(told(&before) == told(&after), "{:?} became {:?}", told(&before), told(&after));
        ensure!(xattr::list(&file).is_ok_and(|names| names.count() == 0), "it has attributes");
    }

    ordinary_programs_copy_and_unpack_files(fixture) {
        let mut inside = fixture.start().await?;
        let script = "set -e; printf '#!/bin/sh\\necho ran' > script; chmod 755 script; ./script; cp -p script copy; ./copy; \
                      touch copy new; mkdir -m 700 d; cp -r folder again; tar cf a.tar script folder; \
                      (cd d; tar xf ../a.tar; ./script)";
        let done = inside.sh(script).await?;
        ensure!(done.success() && done.stdout == b"ran\nran\nran\n", "{done:?}");
        inside.end().await?;
    }

    a_path_too_long_for_any_call_does_no_harm(fixture) {
        let mut inside = fixture.start().await?;
        let name = "n".repeat(250);
        let script = format!("i=0; while [ $i -lt 17 ]; do mkdir {name}; cd -P {name}; i=$((i+1)); done; echo x > file");
        let done = inside.sh(&script).await?;
        ensure!(done.success(), "{done:?}");
        inside.works().await?;
        inside.end().await?;
    }

    temporary_files_stay_inside(fixture) {
        let mut inside = fixture.start().await?;
        let name = format!("leak-{}", fixture.marker);
        inside.sh(&format!("echo x > /tmp/{name}; echo x > $TMPDIR/{name}; test -e $TMPDIR/{name}")).await?;
        ensure!(!Path::new("/tmp").join(&name).exists(), "it is on the host");
        inside.end().await?;
    }

    links_do_not_lead_out(fixture) {
        let host = fixture.host.path().display().to_string();
        let mut inside = fixture.start().await?;
        inside.sh(&format!("ln -s {host}/gold.json gold; ln -s {host} host; ln -s / all; ln -s ../../../../../../..{host} up; ln -s /etc/shadow shadow; ln -s loop loop")).await?;
        for path in ["gold".to_owned(), "host/gold.json".into(), format!("all{host}/gold.json"), "up/gold.json".into(), "shadow".into(), "loop".into()] {
            ensure!(refused(&inside.read(&path).await), "{path} was read");
            let said = inside.say(&format!("cat {path} 2>/dev/null")).await?;
            ensure!(said.is_empty(), "{path}: {said}");
        }
        for path in ["gold", "host/gold.json", "up/gold.json", "host/new", "up/new"] {
            let _ = inside.write(path, b"forged").await;
        }
        ensure!(refused(&inside.sandbox.list(Path::new("host/home")).await), "a folder behind a link was listed");
        inside.end().await?;
        ensure!(std::fs::read(fixture.host.path().join("gold.json")).unwrap() == b"TOP SECRET", "the gold was forged");
        ensure!(!fixture.host.path().join("new").exists(), "a file was made outside");
    }

    hard_links_to_the_host_cannot_be_made(fixture) {
        let mut inside = fixture.start().await?;
        let gold = fixture.host.path().join("gold.json");
        let said = inside.say(&format!("ln {0} hard 2>/dev/null && echo escaped; ln /etc/passwd hard2 2>/dev/null && echo escaped; ln /usr/bin/env hard3 2>/dev/null && echo escaped", gold.display())).await?;
        ensure!(said.is_empty(), "{said}");
        inside.end().await?;
    }

    a_fifo_does_not_hang_the_harness(fixture) {
        let mut inside = fixture.start().await?;
        inside.sh("mkfifo pipe; mkdir -p sub; ln -s ../pipe sub/link").await?;
        let begun = Instant::now();
        for path in ["pipe", "sub/link"] {
            ensure!(refused(&inside.read(path).await), "{path} was read");
            ensure!(refused(&inside.write(path, b"x").await), "{path} was written");
        }
        ensure!(begun.elapsed() < Duration::from_secs(2), "took {:?}", begun.elapsed());
        inside.end().await?;
    }

    devices_and_folders_are_refused_by_the_file_tools(fixture) {
        let mut inside = fixture.start().await?;
        for path in ["/dev/zero", "/dev/urandom", "/dev/null", "folder", ".", "/proc/self/fd", "/"] {
            ensure!(refused(&inside.read(path).await), "{path} was read");
        }
        inside.works().await?;
        inside.end().await?;
    }

    a_file_longer_than_the_limit_is_refused(fixture) {
        let mut inside = fixture.start().await?;
        inside.sh("head -c 1048576 /dev/zero > fits; head -c 1048577 /dev/zero > long; truncate -s 60000000 hole").await?;
        ensure!(inside.read("fits").await.is_ok_and(|bytes| bytes.len() as u64 == MIB), "fits");
        for path in ["long", "hole"] {
            ensure!(refused(&inside.read(path).await), "{path} was read");
        }
        inside.works().await?;
        inside.end().await?;
    }

    files_round_trip_with_their_folders(fixture) {
        let mut inside = fixture.start().await?;
        let bytes: Vec<u8> = (0..=255).cycle().take(700_000).collect();
        ensure!(inside.write("a/b/c/data.bin", &bytes).await.is_ok(), "write");
        ensure!(inside.write("a/b/c/data.bin", &bytes[..500_000]).await.is_ok(), "shorten");
        ensure!(inside.read("a/b/c/data.bin").await.is_ok_and(|read| read == bytes[..500_000]), "read");
        ensure!(inside.write("empty", b"").await.is_ok(), "write nothing");
        ensure!(inside.read("empty").await.is_ok_and(|read| read.is_empty()), "read nothing");
        ensure!(inside.say("wc -c < a/b/c/data.bin; id -u; stat -c %u a/b/c/data.bin").await?.lines().skip(1).collect::<std::collections::BTreeSet<_>>().len() == 1, "owner");
        inside.end().await?;
    }

    writing_where_a_command_may_not_is_refused(fixture) {
        let mut inside = fixture.start().await?;
        inside.sh("mkdir closed; echo x > closed/file; chmod 500 closed; echo y > locked; chmod 400 locked").await?;
        ensure!(refused(&inside.write("closed/new", b"x").await), "a closed folder");
        ensure!(refused(&inside.write("locked", b"x").await), "a locked file");
        ensure!(refused(&inside.write("hello.txt/below", b"x").await), "below a file");
        ensure!(refused(&inside.write("folder", b"x").await), "over a folder");
        inside.end().await?;
    }

    names_of_any_bytes_are_kept(fixture) {
        let mut inside = fixture.start().await?;
        let names: [&[u8]; 5] = [b"line\nbreak", b"\xff\xfe.bin", b" spaces and 'quotes' \"", b"-rf", "naïve-🦀".as_bytes()];
        for name in names {
            let path = Path::new("odd").join(OsStr::from_bytes(name));
            let result = inside.sandbox.write(&path, name).await;
            ensure!(result.is_ok(), "{path:?}: {result:?}");
            let result = inside.sandbox.read(&path, MIB).await;
            ensure!(result.as_ref().is_ok_and(|read| read == name), "{path:?}: {result:?}");
        }
        let listed = inside.sandbox.list(Path::new("odd")).await.map_err(|fault| fault.to_string())?;
        let mut expected = names.map(OsStr::from_bytes);
        expected.sort();
        ensure!(listed.iter().map(|entry| entry.name.as_os_str()).eq(expected), "{listed:?}");
        inside.end().await?;
    }

    a_listing_tells_kinds_and_sizes_in_order(fixture) {
        let mut inside = fixture.start().await?;
        inside.sh("mkdir kinds; cd kinds; echo four > b-file; mkdir a-folder; ln -s / c-link; mkfifo d-pipe").await?;
        let listed = inside.sandbox.list(Path::new("kinds")).await.map_err(|fault| fault.to_string())?;
        let kinds: Vec<_> = listed.iter().map(|entry| (entry.kind, entry.size)).collect();
        let expected = [(EntryKind::Folder, 0), (EntryKind::File, 5), (EntryKind::Link, 0), (EntryKind::Other, 0)];
        ensure!(kinds == expected, "{listed:?}");
        ensure!(refused(&inside.sandbox.list(Path::new("kinds/b-file")).await), "a file was listed");
        ensure!(refused(&inside.sandbox.list(Path::new("nowhere")).await), "nothing was listed");
        inside.end().await?;
    }

    a_deep_tree_of_folders_does_no_harm(fixture) {
        let mut inside = fixture.start().await?;
        inside.sh("i=0; while [ $i -lt 300 ]; do mkdir deeper && cd deeper || break; i=$((i+1)); done; echo deep > bottom").await?;
        inside.works().await?;
        let path = format!("{}bottom", "deeper/".repeat(300));
        ensure!(inside.read(&path).await.is_ok_and(|bytes| bytes == b"deep\n"), "the bottom cannot be read");
        inside.sh("rm -rf deeper").await?;
        inside.end().await?;
    }

    a_folder_of_thousands_of_files_is_listed(fixture) {
        let mut inside = fixture.start().await?;
        inside.sh("mkdir many; cd many; seq 1 3000 | xargs touch").await?;
        let listed = inside.sandbox.list(Path::new("many")).await.map_err(|fault| fault.to_string())?;
        ensure!(listed.len() == 3000, "{}", listed.len());
        inside.end().await?;
    }

    a_workspace_with_too_much_to_list_is_still_read_at_the_end(fixture) {
        // Raise the disk limit, because empty files count towards it, too.
        fixture.limits.disk = 2048 * MIB;
        // The init of a container lists at most 100,000 new files, so exceed this number. For other workspaces, no such
        // list is made.
        let crowd = if fixture.backend.layers() == LayersKind::Image { 105_000 } else { 15_000 };
        let mut inside = fixture.start().await?;
        let written = inside.written.clone();
        // In the order of names, the folder `crowd` with too many files comes before the changed file `hello.txt`,
        // whose change must still be read. Three more files have paths that are too long for any system call.
        let script = format!("bash -ec 'echo kept > hello.txt; mkdir crowd; cd crowd; seq 1 {crowd} | xargs touch; cd ..
            name=$(printf a%.0s $(seq 250)); for i in $(seq 90); do mkdir $name; cd -P $name; done; touch 1 2 3'");
        // Creating this many files takes more than the usual 20 s on a busy machine.
        let done = inside.exec(Command::shell(&script), limits(90.0)).await?;
        ensure!(done.exit == Exit::Code(0), "{:?} {}", done.exit, String::from_utf8_lossy(&done.stderr));
        inside.end().await?;
        ensure!(fs::read(written.join("hello.txt")).is_ok_and(|bytes| bytes == b"kept\n"), "what was changed is lost");
        ensure!(written.join("crowd/1").exists(), "what is new is lost");
        let untouched = fs::symlink_metadata(written.join("folder/inner.txt"));
        ensure!(!untouched.is_ok_and(|about| about.file_type().is_char_device()), "what was left alone is removed");
    }

    deleting_the_workspace_leaves_a_working_sandbox(fixture) {
        let mut inside = fixture.start().await?;
        let workdir = inside.sandbox.workdir().display().to_string();
        inside.sh(&format!("cd /; rm -rf {workdir}; rm -rf {workdir}/* {workdir}/.[a-z]*; rmdir {workdir}; mv {workdir} /tmp/away; true")).await?;
        inside.works().await?;
        ensure!(inside.write("again", b"x").await.is_ok(), "nothing can be written");
        ensure!(inside.say("cat again; ls").await?.starts_with('x'), "nothing can be read");
        inside.end().await?;
    }

    deleting_everything_in_reach_harms_nothing_outside(fixture) {
        let mut inside = fixture.start().await?;
        inside.sh("rm -rf --no-preserve-root /usr/bin /usr/include /etc /home /root /proc /dev /var /run 2>/dev/null; true").await?;
        inside.works().await?;
        inside.end().await?;
        ensure!(Path::new("/usr/bin/env").exists() && Path::new("/etc/passwd").exists(), "the host was harmed");
        ensure!(fixture.host.path().join("gold.json").exists(), "the gold is gone");
    }
}
