//! How commands end: time limits, signals, which processes stay and which are killed.

use std::time::{Duration, Instant};

use autoexperiment::sandbox::{Command, Exit, Fault};

use super::fixture::limits;
use super::runner::{survivors, survivors_after_a_moment};
use crate::ensure;

crate::cases! {
    exit_codes_and_signals_are_told_apart(fixture) {
        let mut inside = fixture.start().await?;
        ensure!(inside.sh("exit 0").await?.exit == Exit::Code(0), "0");
        ensure!(inside.sh("exit 255").await?.exit == Exit::Code(255), "255");
        ensure!(inside.sh("kill -SEGV $$").await?.exit == Exit::Signal(11), "SEGV");
        ensure!(inside.sh("kill -KILL $$").await?.exit == Exit::Signal(9), "KILL");
        ensure!(inside.sh("exit 137").await?.exit == Exit::Code(137), "137");
        inside.end().await?;
    }

    a_missing_program_or_folder_is_refused_by_name(fixture) {
        let mut inside = fixture.start().await?;
        let missing = Command { argv: vec!["no-such-program".into()], ..Command::default() };
        let result = inside.sandbox.exec(&missing, &limits(5.0)).await;
        ensure!(matches!(&result, Err(Fault::Refused(why)) if why.contains("no-such-program")), "{result:?}");
        let result = inside.sandbox.exec(&Command::shell("true").in_dir("nowhere"), &limits(5.0)).await;
        ensure!(matches!(&result, Err(Fault::Refused(why)) if why.contains("nowhere")), "{result:?}");
        let result = inside.sandbox.exec(&Command::default(), &limits(5.0)).await;
        ensure!(matches!(&result, Err(Fault::Refused(_))), "{result:?}");
        inside.works().await?;
        inside.end().await?;
    }

    a_time_limit_ends_a_command_and_what_it_started(fixture) {
        let mut inside = fixture.start().await?;
        let begun = Instant::now();
        let script = "sleep 1000 & (setsid sleep 1000 &) ; sh -c 'sleep 1000; true'; true";
        let done = inside.exec(Command::shell(script), limits(0.4)).await?;
        ensure!(done.exit == Exit::TimedOut, "{done:?}");
        ensure!(begun.elapsed() < Duration::from_secs(3), "took {:?}", begun.elapsed());
        let left: Vec<_> = survivors(&fixture.marker).into_iter().filter(|line| line.contains("sleep")).collect();
        ensure!(left.is_empty(), "{left:?}");
        inside.works().await?;
        inside.end().await?;
    }

    a_time_limit_lets_a_command_clean_up(fixture) {
        let mut inside = fixture.start().await?;
        let script = "trap 'echo cleaned > done; exit 0' TERM; sleep 1000 & wait";
        let done = inside.exec(Command::shell(script), limits(0.3)).await?;
        ensure!(done.exit == Exit::TimedOut, "{done:?}");
        ensure!(inside.say("cat done").await? == "cleaned", "no time to clean up");
        inside.end().await?;
    }

    ignoring_term_does_not_help(fixture) {
        let mut inside = fixture.start().await?;
        let begun = Instant::now();
        let script = "trap '' TERM INT HUP; while :; do sleep 1000; done";
        let done = inside.exec(Command::shell(script), limits(0.3)).await?;
        ensure!(done.exit == Exit::TimedOut, "{done:?}");
        let took = begun.elapsed();
        ensure!(took > Duration::from_millis(450) && took < Duration::from_secs(3), "took {took:?}");
        inside.end().await?;
    }

    a_stopped_command_still_times_out(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.exec(Command::shell("kill -STOP $$"), limits(0.3)).await?;
        ensure!(done.exit == Exit::TimedOut, "{done:?}");
        inside.works().await?;
        inside.end().await?;
    }

    a_time_limit_ends_a_daemon_that_the_command_started(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["daemon", &fixture.marker, "stay"], limits(0.4)).await?;
        ensure!(done.exit == Exit::TimedOut, "{done:?}");
        let left: Vec<_> = survivors(&fixture.marker).into_iter().filter(|line| line.contains("daemon")).collect();
        ensure!(left.is_empty(), "{left:?}");
        inside.end().await?;
    }

    a_daemon_outlives_its_command_and_dies_with_the_sandbox(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["daemon", &fixture.marker], limits(5.0)).await?;
        ensure!(done.stdout == b"started\n", "{done:?}");
        let daemon = |lines: Vec<String>| lines.iter().any(|line| line.contains("daemon"));
        // The daemon forks twice. Wait, because it might be missed between the two forks.
        inside.sh("sleep 0.1").await?;
        ensure!(daemon(survivors(&fixture.marker)), "it died with its command");
        inside.works().await?;
        inside.end().await?;
        ensure!(!daemon(survivors(&fixture.marker)), "it outlived its sandbox");
    }

    a_time_limit_spares_what_earlier_commands_left_running(fixture) {
        let mut inside = fixture.start().await?;
        inside.sh("(while :; do echo tick >> ticks; sleep 0.05; done) > /dev/null 2>&1 &").await?;
        let done = inside.exec(Command::shell("sleep 1000"), limits(0.3)).await?;
        ensure!(done.exit == Exit::TimedOut, "{done:?}");
        let said = inside.say("a=$(wc -l < ticks); sleep 0.4; b=$(wc -l < ticks); test $b -gt $a && echo alive").await?;
        ensure!(said == "alive", "the earlier process is gone: {said}");
        inside.end().await?;
    }

    a_background_process_that_holds_the_output_does_not_keep_a_command_running(fixture) {
        let mut inside = fixture.start().await?;
        let begun = Instant::now();
        let done = inside.exec(Command::shell("echo before; sleep 1000 & echo after"), limits(10.0)).await?;
        ensure!(done.exit == Exit::Code(0) && done.stdout == b"before\nafter\n", "{done:?}");
        ensure!(begun.elapsed() < Duration::from_secs(2), "took {:?}", begun.elapsed());
        inside.end().await?;
    }

    commands_get_their_standard_input_and_its_end(fixture) {
        let mut inside = fixture.start().await?;
        ensure!(inside.say("cat; echo end").await? == "end", "no end of file");
        let mut command = Command::shell("wc -c");
        command.stdin = vec![b'x'; 3_000_000];
        let done = inside.exec(command, limits(10.0)).await?;
        ensure!(String::from_utf8_lossy(&done.stdout).trim() == "3000000", "{done:?}");
        inside.end().await?;
    }

    input_that_nobody_reads_does_no_harm(fixture) {
        let mut inside = fixture.start().await?;
        for script in ["exec <&-; exit 3", "exit 3", "exec <&- >&- 2>&-; sleep 0.1; exit 3"] {
            let mut command = Command::shell(script);
            command.stdin = vec![b'x'; 1_000_000];
            let done = inside.exec(command, limits(10.0)).await?;
            ensure!(done.exit == Exit::Code(3), "{script}: {done:?}");
        }
        inside.end().await?;
    }

    dropping_a_sandbox_ends_everything(fixture) {
        let mut inside = fixture.start().await?;
        inside.hostile(&["daemon", &fixture.marker], limits(5.0)).await?;
        drop(inside);
        let left = survivors_after_a_moment(&fixture.marker);
        ensure!(left.is_empty(), "{left:?}");
    }

    an_abandoned_command_ends_with_its_sandbox(fixture) {
        let mut inside = fixture.start().await?;
        let command = Command::shell("sleep 1000");
        let waited = tokio::time::timeout(Duration::from_millis(200), inside.sandbox.exec(&command, &limits(60.0))).await;
        ensure!(waited.is_err(), "it ended by itself");
        let begun = Instant::now();
        inside.end().await?;
        ensure!(begun.elapsed() < Duration::from_secs(3), "took {:?}", begun.elapsed());
    }

    many_sandboxes_at_once_do_not_mix(fixture) {
        let mut sandboxes = Vec::new();
        for _ in 0..8 {
            sandboxes.push(fixture.start().await?);
        }
        let mut tasks = tokio::task::JoinSet::new();
        for (number, mut inside) in sandboxes.into_iter().enumerate() {
            tasks.spawn(async move {
                for step in 0..10 {
                    let said = inside.say(&format!("echo {number}.{step} > mine; cat mine")).await?;
                    ensure!(said == format!("{number}.{step}"), "{said}");
                }
                inside.end().await
            });
        }
        while let Some(result) = tasks.join_next().await {
            result.map_err(|error| error.to_string())??;
        }
    }
}
