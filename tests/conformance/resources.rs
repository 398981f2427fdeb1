//! Attempts to use up the machine: processes, memory, disk, output.

use std::time::{Duration, Instant};

use autoexperiment::sandbox::{Command, Exit};

use super::fixture::{MIB, failed, limits};
use crate::ensure;

crate::cases! {
    processes_are_limited(fixture) {
        fixture.limits.processes = 20;
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["fork-until-refused"], limits(20.0)).await?;
        let count: u32 = String::from_utf8_lossy(&done.stdout).trim().parse().map_err(|_| format!("{done:?}"))?;
        ensure!(count <= 20, "{count} processes");
        inside.end().await?;
    }

    a_fork_bomb_ends_with_its_time_limit(fixture) {
        let mut inside = fixture.start().await?;
        let begun = Instant::now();
        let done = inside.hostile(&["fork-bomb"], limits(0.5)).await?;
        ensure!(done.exit == Exit::TimedOut, "{done:?}");
        ensure!(begun.elapsed() < Duration::from_secs(8), "took {:?}", begun.elapsed());
        inside.works().await?;
        inside.end().await?;
    }

    a_fork_bomb_does_not_keep_a_sandbox_alive(fixture) {
        let mut inside = fixture.start().await?;
        inside.sh(&format!("'{}' hostile fork-bomb >/dev/null 2>&1 &", fixture.exe.display())).await?;
        inside.end().await?;
    }

    memory_is_limited(fixture) {
        fixture.limits.memory = 128 * MIB;
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["memory", "400"], limits(20.0)).await?;
        ensure!(failed(done.exit) && !done.stdout.starts_with(b"got"), "{done:?}");
        inside.works().await?;
        let done = inside.hostile(&["memory", "60"], limits(20.0)).await?;
        ensure!(done.stdout == b"got 60\n", "{done:?}");
        inside.end().await?;
    }

    memory_of_all_processes_together_is_limited(fixture) {
        fixture.limits.memory = 256 * MIB;
        let mut inside = fixture.start().await?;
        // Each process stays below the memory limit, but all four together exceed it.
        let done = inside.hostile(&["memories", "4", "150"], limits(20.0)).await?;
        let lived: u32 = String::from_utf8_lossy(&done.stdout).trim().parse().map_err(|_| format!("{done:?}"))?;
        ensure!((1..4).contains(&lived), "{lived} of 4 lived");
        // Pages that a forked process shares with its parent count once.
        let done = inside.hostile(&["shared-memories", "8", "100"], limits(20.0)).await?;
        ensure!(done.stdout == b"8\n", "{done:?}");
        inside.works().await?;
        inside.end().await?;
    }

    shared_memory_that_outlives_its_makers_does_not_end_the_sandbox(fixture) {
        fixture.limits.memory = 128 * MIB;
        let mut inside = fixture.start().await?;
        for _ in 0..3 {
            inside.hostile(&["shared-segments", "120"], limits(20.0)).await?;
        }
        inside.works().await?;
        inside.end().await?;
    }

    shared_memory_and_queues_end_with_the_sandbox(fixture) {
        let key = std::process::id() as i32 ^ 0x5a5a_0000;
        let mut inside = fixture.start().await?;
        inside.hostile(&["leave-objects", &key.to_string()], limits(5.0)).await?;
        inside.end().await?;
        // SAFETY: the calls take no pointers.
        let left = unsafe { (nix::libc::shmget(key, 0, 0), nix::libc::msgget(key, 0)) };
        ensure!(left == (-1, -1), "{left:?}");
    }

    cpus_are_limited(fixture) {
        fixture.limits.cpus = Some(0.25);
        let started = fixture.start().await;
        if started.as_ref().is_err_and(|error| error.contains("CPUs cannot be limited here")) {
            // Refusing to start a sandbox is correct where CPUs cannot be limited.
            return Ok(());
        }
        let mut inside = started?;
        let busy = "(while :; do :; done) & one=$!; (while :; do :; done) & two=$!; sleep 3; kill $one $two; wait";
        let done = inside.sh(busy).await?;
        let most = done.wall.mul_f64(0.25) + Duration::from_millis(300);
        ensure!(done.cpu < most && done.cpu > Duration::from_millis(100), "{:?} in {:?}", done.cpu, done.wall);
        inside.end().await?;
    }

    the_memory_of_temporary_files_is_limited(fixture) {
        fixture.limits.memory = 128 * MIB;
        fixture.limits.file_size = 1024 * MIB;
        let mut inside = fixture.start().await?;
        let done = inside.sh("head -c 300000000 /dev/zero > /tmp/large").await?;
        ensure!(failed(done.exit), "{done:?}");
        inside.works().await?;
        inside.end().await?;
    }

    a_large_file_is_stopped_at_its_limit(fixture) {
        fixture.limits.file_size = 4 * MIB;
        let mut inside = fixture.start().await?;
        let done = inside.sh("head -c 20000000 /dev/zero > large; wc -c < large").await?;
        ensure!(String::from_utf8_lossy(&done.stdout).trim() == (4 * MIB).to_string(), "{done:?}");
        inside.end().await?;
    }

    a_file_job_too_is_stopped_at_the_limit(fixture) {
        fixture.limits.file_size = MIB;
        let mut inside = fixture.start().await?;
        ensure!(inside.write("large", &vec![0; 3 << 20]).await.is_err(), "it was written");
        inside.works().await?;
        inside.end().await?;
    }

    a_command_that_fills_the_disk_is_stopped_and_reported(fixture) {
        fixture.limits.disk = 24 * MIB;
        let mut inside = fixture.start().await?;
        let script = "i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > fill$i; sleep 0.1; done";
        let begun = Instant::now();
        let done = inside.exec(Command::shell(script), limits(30.0)).await?;
        ensure!(done.exit == Exit::DiskFull, "{done:?}");
        ensure!(begun.elapsed() < Duration::from_secs(10), "took {:?}", begun.elapsed());
        inside.sh("rm fill*").await?;
        inside.works().await?;
        inside.end().await?;
    }

    a_disk_filled_by_quick_commands_is_noticed_after_one_of_them(fixture) {
        let mut inside = fixture.start().await?;
        let mut last = Exit::Code(0);
        for number in 0..30 {
            let done = inside.sh(&format!("head -c 8000000 /dev/zero > fill{number}; sleep 0.03")).await?;
            last = done.exit;
            if last == Exit::DiskFull {
                break;
            }
        }
        ensure!(last == Exit::DiskFull, "240 MB written, last {last:?}");
        inside.end().await?;
    }

    a_swarm_of_empty_files_counts_as_disk(fixture) {
        fixture.limits.disk = 4 * MIB;
        let mut inside = fixture.start().await?;
        let script = "i=0; while :; do i=$((i+1)); mkdir d$i; (cd d$i; seq 1 500 | xargs touch); done";
        let done = inside.exec(Command::shell(script), limits(20.0)).await?;
        ensure!(done.exit == Exit::DiskFull, "{done:?}");
        inside.end().await?;
    }

    files_without_a_name_count_as_disk(fixture) {
        fixture.is_measured = true;
        fixture.limits.disk = 24 * MIB;
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["hold-unlinked", "100"], limits(20.0)).await?;
        ensure!(done.exit == Exit::DiskFull, "{done:?}");
        inside.works().await?;
        inside.end().await?;
    }

    files_without_a_name_that_a_daemon_holds_count_as_disk(fixture) {
        fixture.is_measured = true;
        fixture.limits.disk = 24 * MIB;
        let mut inside = fixture.start().await?;
        inside.sh(&format!("setsid '{}' hostile hold-unlinked 100 >/dev/null 2>&1 &", fixture.exe.display())).await?;
        let done = inside.sh("sleep 15").await?;
        ensure!(done.exit == Exit::DiskFull, "{done:?}");
        inside.end().await?;
    }

    files_in_folders_that_are_closed_count_as_disk(fixture) {
        fixture.limits.disk = 24 * MIB;
        let mut inside = fixture.start().await?;
        let script = "i=0; while :; do i=$((i+1)); mkdir d$i; head -c 4000000 /dev/zero > d$i/f; chmod 0 d$i; sleep 0.1; done";
        let done = inside.exec(Command::shell(script), limits(20.0)).await?;
        // Without namespaces, the sandbox refuses to take permissions away from a folder's owner, so the folders stay
        // open. The files must count in both cases.
        ensure!(done.exit == Exit::DiskFull, "{done:?}");
        inside.works().await?;
        inside.end().await?;
    }

    files_beyond_the_longest_path_count_as_disk(fixture) {
        fixture.limits.disk = 24 * MIB;
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["dig", "100"], limits(20.0)).await?;
        ensure!(done.exit == Exit::DiskFull, "{done:?}");
        inside.works().await?;
        inside.end().await?;
    }

    memory_that_no_process_maps_is_limited(fixture) {
        fixture.limits.memory = 128 * MIB;
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["memfds", "400"], limits(20.0)).await?;
        let got: u64 = String::from_utf8_lossy(&done.stdout).trim().parse().unwrap_or(0);
        ensure!(got <= 128, "{done:?}");
        inside.works().await?;
        inside.end().await?;
    }

    watchers_of_files_are_limited(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["watchers"], limits(20.0)).await?;
        let count: u32 = String::from_utf8_lossy(&done.stdout).trim().parse().map_err(|_| format!("{done:?}"))?;
        ensure!(count <= 8, "{count} instances");
        inside.end().await?;
    }

    endless_output_is_cut_and_stopped(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["endless"], limits(0.7)).await?;
        ensure!(done.exit == Exit::TimedOut, "{:?}", done.exit);
        ensure!(done.stdout.len() < 10_200 && done.cut > 1_000_000, "{} kept, {} cut", done.stdout.len(), done.cut);
        inside.end().await?;
    }

    a_line_of_fifty_megabytes_keeps_its_head_and_tail(fixture) {
        let mut inside = fixture.start().await?;
        let script = format!("echo HEAD; '{}' hostile bytes 50; echo TAIL", fixture.exe.display());
        let done = inside.sh(&script).await?;
        let text = String::from_utf8_lossy(&done.stdout);
        ensure!(text.starts_with("HEAD") && text.ends_with("TAIL\n"), "{}", text.len());
        let cut = (50 << 20) + 10 - 10_000;
        ensure!(done.cut == cut && text.contains(&format!("{cut} bytes cut")), "{} cut, not {cut}", done.cut);
        inside.end().await?;
    }

    binary_output_arrives_byte_for_byte(fixture) {
        let mut inside = fixture.start().await?;
        let mut command = Command::shell("cat; printf '\\377\\000\\n' >&2");
        command.stdin = (0..=255).cycle().take(9000).collect();
        let expected = command.stdin.clone();
        let done = inside.exec(command, limits(10.0)).await?;
        ensure!(done.stdout == expected, "{} bytes", done.stdout.len());
        ensure!(done.stderr == [255, 0, 10], "{:?}", done.stderr);
        inside.end().await?;
    }

    a_herd_of_zombies_is_reaped(fixture) {
        fixture.limits.processes = 40;
        let mut inside = fixture.start().await?;
        for _ in 0..4 {
            let done = inside.hostile(&["zombies", "30"], limits(10.0)).await?;
            let count: u32 = String::from_utf8_lossy(&done.stdout).trim().parse().map_err(|_| format!("{done:?}"))?;
            ensure!(count >= 25, "only {count}: those of the last round still count");
        }
        inside.end().await?;
    }

    open_files_are_limited(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["open-files"], limits(10.0)).await?;
        let count: u32 = String::from_utf8_lossy(&done.stdout).trim().parse().map_err(|_| format!("{done:?}"))?;
        ensure!((256..10_000).contains(&count), "{count} files");
        inside.works().await?;
        inside.end().await?;
    }

    cpu_time_is_limited(fixture) {
        fixture.limits.cpu_seconds = 1;
        let mut inside = fixture.start().await?;
        let done = inside.exec(Command::shell("while :; do :; done"), limits(15.0)).await?;
        ensure!(matches!(done.exit, Exit::Signal(_)), "{done:?}");
        inside.works().await?;
        inside.end().await?;
    }

    what_a_command_used_is_reported(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["memory", "40"], limits(10.0)).await?;
        ensure!(done.peak_memory > 40 * MIB && done.peak_memory < 100 * MIB, "{} bytes", done.peak_memory);
        let done = inside.sh("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done").await?;
        ensure!(done.cpu > Duration::from_millis(20) && done.cpu <= done.wall * 2, "{done:?}");
        inside.end().await?;
    }

    a_crash_leaves_no_core(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.sh("sh -c 'kill -SEGV $$'; ls -A; ls -A /tmp $HOME 2>/dev/null | grep core").await?;
        ensure!(!String::from_utf8_lossy(&done.stdout).contains("core"), "{done:?}");
        inside.end().await?;
    }
}
