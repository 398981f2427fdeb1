//! Attempts to break out: system calls, privileges, other processes, the network.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::hostile::{BY_PERMISSION, FORBIDDEN};
use crate::ensure;

/// A process on the host that a case may try to harm.
struct Victim(std::process::Child);

impl Victim {
    fn new() -> Self {
        Self(std::process::Command::new("sleep").arg("1000").spawn().unwrap())
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

crate::cases! {
    forbidden_system_calls_are_refused(fixture) {
        let mut inside = fixture.start().await?;
        for name in FORBIDDEN.iter().chain(BY_PERMISSION) {
            inside.denied(&["system-call", name]).await?;
        }
        inside.end().await?;
    }

    refusals_are_by_permission_and_not_by_accident(fixture) {
        let mut inside = fixture.start().await?;
        for name in BY_PERMISSION {
            let done = inside.hostile(&["system-call", name], super::fixture::limits(10.0)).await?;
            let said = String::from_utf8_lossy(&done.stdout).into_owned();
            let right = said.contains("os error 1)") || said.contains("os error 38)");
            ensure!(right, "{name}: {said}");
        }
        inside.end().await?;
    }

    a_process_has_no_capabilities_and_no_new_privileges(fixture) {
        let mut inside = fixture.start().await?;
        // Without a pid namespace, `/proc` may be unreadable. The case then checks only that `setuid` is denied.
        let said = inside.say("cat /proc/self/status || echo closed").await?;
        if !said.contains("closed") {
            for line in ["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000",
                "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"]
            {
                ensure!(said.contains(line), "no `{line}` in {said}");
            }
        }
        inside.denied(&["setuid"]).await?;
        inside.end().await?;
    }

    programs_with_the_setuid_bit_give_no_rights(fixture) {
        let mut inside = fixture.start().await?;
        let said = inside.say("su -c id </dev/null; mount; cp /bin/sh ./shell && chmod u+s ./shell && ./shell -p -c 'id -u'").await?;
        ensure!(!said.contains("uid=0"), "{said}");
        ensure!(!said.lines().any(|line| line == "0"), "{said}");
        inside.end().await?;
    }

    limits_cannot_be_raised(fixture) {
        let mut inside = fixture.start().await?;
        inside.denied(&["raise-limits"]).await?;
        let said = inside.say("ulimit -c; ulimit -f unlimited && echo escaped").await?;
        ensure!(!said.contains("escaped") && said.starts_with('0'), "{said}");
        inside.end().await?;
    }

    host_processes_cannot_be_killed(fixture) {
        let mut victim = Victim::new();
        let pid = victim.0.id().to_string();
        let mut inside = fixture.start().await?;
        inside.denied(&["kill", &pid, "15"]).await?;
        inside.denied(&["kill", &pid, "9"]).await?;
        inside.denied(&["kill", &std::process::id().to_string(), "0"]).await?;
        ensure!(victim.is_alive(), "the host's process was killed");
        inside.end().await?;
    }

    host_processes_cannot_be_traced(fixture) {
        let mut victim = Victim::new();
        let mut inside = fixture.start().await?;
        inside.denied(&["ptrace", &victim.0.id().to_string()]).await?;
        inside.denied(&["ptrace", "1"]).await?;
        ensure!(victim.is_alive(), "the host's process died");
        inside.end().await?;
    }

    commands_of_one_sandbox_do_not_reach_those_of_another(fixture) {
        let (mut one, mut other) = (fixture.start().await?, fixture.start().await?);
        let kill = "sleep 0.3; id -u; pkill -9 sleep; kill -9 -1; sleep 1";
        let (killed, alive) = tokio::join!(one.sh(kill), other.sh("id -u; sleep 1; echo alive"));
        let users = [killed, alive].map(|done| done.map(|done| String::from_utf8_lossy(&done.stdout).into_owned()));
        let [Ok(killer), Ok(alive)] = users else { return Err(format!("{users:?}")) };
        ensure!(alive.ends_with("alive\n"), "{alive}");
        // Landlock before version 6 lets processes of the same user signal each other. So each sandbox must have its
        // own user, if the harness can choose users.
        if fixture.backend.name() == "landlock" && fixture.backend.owner().is_some() {
            ensure!(killer.lines().next() != alive.lines().next(), "both have the user {killer}");
        }
        one.end().await?;
        other.end().await?;
    }

    killing_everything_in_reach_harms_only_the_command(fixture) {
        let mut victim = Victim::new();
        let mut inside = fixture.start().await?;
        inside.hostile(&["kill-group-of-all"], super::fixture::limits(5.0)).await?;
        inside.works().await?;
        ensure!(victim.is_alive(), "the host's process was killed");
        inside.end().await?;
    }

    a_command_cannot_kill_or_stop_its_init(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["stop-everything"], super::fixture::limits(5.0)).await?;
        ensure!(done.stdout == b"still here\n", "{done:?}");
        inside.works().await?;
        inside.end().await?;
    }

    a_process_may_set_its_own_limits(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["own-limits", "0"], super::fixture::limits(5.0)).await?;
        ensure!(done.stdout.ends_with(b"0]\n") && !done.stdout.contains(&b'-'), "{done:?}");
        inside.end().await?;
    }

    a_process_may_set_its_own_limits_by_its_number(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["own-limits", "1"], super::fixture::limits(5.0)).await?;
        ensure!(!done.stdout.contains(&b'-'), "refused: {}", String::from_utf8_lossy(&done.stdout));
        inside.end().await?;
    }

    a_fault_forged_for_the_init_does_not_end_it(fixture) {
        let mut inside = fixture.start().await?;
        for address in ["0", "4096"] {
            let done = inside.hostile(&["forge-faults", address], super::fixture::limits(5.0)).await?;
            ensure!(done.stdout == b"still here\n", "{done:?}");
        }
        inside.works().await?;
        inside.end().await?;
    }

    a_command_cannot_slow_or_starve_its_init(fixture) {
        let mut inside = fixture.start().await?;
        for name in ["limits-of-init", "scheduler-of-init", "affinity-of-init", "priority-of-init", "priority-of-user"] {
            inside.denied(&["system-call", name]).await?;
        }
        inside.works().await?;
        inside.end().await?;
    }

    file_tools_show_nothing_of_the_init(fixture) {
        let mut inside = fixture.start().await?;
        inside.sh("ln -s /proc/self/maps maps; ln -s /proc/self/exe exe").await?;
        for path in ["/proc/self/maps", "/proc/self/environ", "/proc/self/exe", "/proc/1/maps", "/proc/version", "maps",
            "exe", "/dev/fd/0"]
        {
            ensure!(super::fixture::refused(&inside.read(path).await), "{path} was read");
        }
        for path in ["/proc/self", "/proc/self/fd", "/proc"] {
            ensure!(super::fixture::refused(&inside.sandbox.list(std::path::Path::new(path)).await), "{path} was listed");
        }
        ensure!(super::fixture::refused(&inside.write("/proc/self/oom_score_adj", b"0").await), "written");
        inside.works().await?;
        inside.end().await?;
    }

    the_init_cannot_be_inspected(fixture) {
        let mut inside = fixture.start().await?;
        for file in ["environ", "mem", "maps", "cwd/", "root/", "fd/0", "exe"] {
            let said = inside.say(&format!("cat /proc/1/{file} > copied 2>/dev/null; ls -A /proc/1/fd 2>/dev/null; wc -c < copied")).await?;
            ensure!(said == "0", "/proc/1/{file}: {said}");
        }
        let said = inside.say("cat /proc/$PPID/environ /proc/$PPID/mem 2>/dev/null; ls /proc/$PPID/fd 2>/dev/null").await?;
        ensure!(said.is_empty(), "{said}");
        inside.end().await?;
    }

    kernel_settings_cannot_be_written(fixture) {
        let mut inside = fixture.start().await?;
        for file in ["/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
            "/proc/sys/vm/drop_caches", "/proc/sys/net/ipv4/ip_forward", "/sys/kernel/uevent_helper"]
        {
            let said = inside.say(&format!("(echo 0 > {file}) 2>/dev/null && echo escaped")).await?;
            ensure!(said.is_empty(), "{file} was written");
        }
        inside.end().await?;
    }

    control_groups_cannot_be_left(fixture) {
        let mut inside = fixture.start().await?;
        let script = "for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/*/tasks; \
                      do (echo $$ > $f) 2>/dev/null && echo escaped; done; mkdir /sys/fs/cgroup/x 2>/dev/null && echo escaped";
        let said = inside.say(script).await?;
        ensure!(!said.contains("escaped"), "{said}");
        inside.end().await?;
    }

    a_host_s_loopback_is_out_of_reach(fixture) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut inside = fixture.start().await?;
        inside.denied(&["connect", &address]).await?;
        ensure!(listener.accept().is_err(), "a connection arrived");
        inside.end().await?;
    }

    datagrams_do_not_get_out(fixture) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let mut inside = fixture.start().await?;
        inside.hostile(&["send-datagram", &address], super::fixture::limits(5.0)).await?;
        inside.denied(&["send-datagram", "8.8.8.8:53"]).await?;
        ensure!(socket.recv(&mut [0; 16]).is_err(), "a datagram arrived");
        inside.end().await?;
    }

    the_internet_is_out_of_reach(fixture) {
        let mut inside = fixture.start().await?;
        inside.denied(&["connect", "1.1.1.1:53"]).await?;
        inside.denied(&["connect", "[2606:4700:4700::1111]:53"]).await?;
        // The address at which a cloud's metadata service hands out credentials.
        inside.denied(&["connect", "169.254.169.254:80"]).await?;
        inside.end().await?;
    }

    abstract_sockets_of_the_host_are_out_of_reach(fixture) {
        let name = format!("conformance-{}", fixture.marker);
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut inside = fixture.start().await?;
        inside.denied(&["abstract-socket", &name]).await?;
        ensure!(listener.accept().is_err(), "a connection arrived");
        inside.end().await?;
    }

    socket_files_of_the_host_are_out_of_reach(fixture) {
        let path = fixture.host.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        std::fs::set_permissions(fixture.host.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut inside = fixture.start().await?;
        inside.denied(&["socket-file", path.to_str().unwrap()]).await?;
        ensure!(listener.accept().is_err(), "a connection arrived");
        inside.end().await?;
    }

    datagrams_of_a_pair_do_not_reach_the_host(fixture) {
        let path = fixture.host.path().join("datagrams");
        let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        std::fs::set_permissions(fixture.host.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut inside = fixture.start().await?;
        inside.denied(&["paired-datagram", path.to_str().unwrap()]).await?;
        ensure!(socket.recv(&mut [0; 16]).is_err(), "a datagram arrived");
        inside.end().await?;
    }

    a_loopback_of_its_own_works(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["loopback"], super::fixture::limits(5.0)).await?;
        ensure!(done.success(), "{}", String::from_utf8_lossy(&done.stderr));
        inside.end().await?;
    }

    pairs_of_sockets_work(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["socket-pair"], super::fixture::limits(5.0)).await?;
        ensure!(done.success(), "{done:?}");
        inside.end().await?;
    }
}
