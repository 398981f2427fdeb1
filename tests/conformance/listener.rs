//! Connections from inside a sandbox to the harness: bytes in order in both directions, a process that goes away, an
//! early end.

use std::time::{Duration, Instant};

use autoexperiment::sandbox::{Command, Exit, Fault};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fixture::limits;
use crate::ensure;

crate::cases! {
    a_command_reaches_the_harness_and_much_goes_both_ways_at_once(fixture) {
        // On a slow machine, a hundred shells may be alive at once.
        fixture.limits.processes = 256;
        let mut inside = fixture.start().await?;
        let listened = inside.sandbox.listen().await;
        if !fixture.backend.listens() {
            ensure!(matches!(&listened, Err(Fault::Refused(_))), "not refused");
            inside.works().await?;
            return inside.end().await;
        }
        let mut listener = listened.map_err(|fault| format!("{fault:?}"))?;
        let address = format!("/dev/tcp/{}/{}", listener.address.ip(), listener.address.port());
        // A server that echoes all connections.
        let echo = tokio::spawn(async move {
            let mut count = 0;
            while let Some(mut connection) = listener.connections.recv().await {
                count += 1;
                tokio::spawn(async move {
                    let mut buffer = vec![0; 100_000];
                    while let Ok(read @ 1..) = connection.read(&mut buffer).await {
                        if connection.write_all(&buffer[..read]).await.is_err() {
                            return;
                        }
                    }
                });
            }
            count
        });
        let once = format!(
            "exec 3<>{address}; seq 1 400000 > sent; (cat sent >&3) & head -c $(wc -c < sent) <&3 | cmp - sent && echo same"
        );
        let bash = |script: &str| Command { argv: ["bash", "-c", script].map(Into::into).into(), ..Command::default() };
        let done = inside.exec(bash(&once), limits(30.0)).await?;
        ensure!(done.stdout == b"same\n", "{done:?}");
        // Opens many connections at once, whose clients leave without reading what the server sends back, and then
        // another connection, which must still work.
        let many = format!("for i in $(seq 100); do (exec 3<>{address}; seq 1000 >&3) & done; wait; {once}");
        let done = inside.exec(bash(&many), limits(30.0)).await?;
        ensure!(done.stdout == b"same\n", "{done:?}");
        inside.works().await?;
        inside.end().await?;
        let count = tokio::time::timeout(Duration::from_secs(10), echo).await;
        ensure!(matches!(&count, Ok(Ok(3..=102))), "{count:?}");
    }

    a_command_can_be_ended_before_its_time(fixture) {
        let mut inside = fixture.start().await?;
        if !fixture.backend.listens() {
            return inside.end().await;
        }
        let listener = inside.sandbox.listen().await.map_err(|fault| format!("{fault:?}"))?;
        let stop = listener.stop.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            stop.cancel();
        });
        let begun = Instant::now();
        let done = inside.exec(Command::shell("trap 'echo told; exit 0' TERM; sleep 1000 & wait"), limits(60.0)).await?;
        ensure!(done.exit == Exit::TimedOut && done.stdout == b"told\n", "{done:?}");
        ensure!(begun.elapsed() < Duration::from_secs(10), "took {:?}", begun.elapsed());
        inside.works().await?;
        inside.end().await?;
    }
}
