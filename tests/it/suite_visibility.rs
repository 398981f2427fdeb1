//! Suites, caches and runs in folders that every sandbox shows, such as `/usr`: agents must not see gold or other runs
//! there.

use serde_json::json;

use crate::support::Lab;

#[test]
#[ignore = "needs root to write to /usr/local/src"]
fn an_agent_cannot_read_gold_although_its_suite_is_in_a_folder_that_sandboxes_expose() {
    let lab = Lab::below("/usr/local/src".as_ref());
    let suite = lab.path("");
    let suite = suite.display();
    let search = format!(
        "{{ cat {suite}/papers/tiny/gold.json; grep -rl arithmetic {suite}; find / -name gold.json; \
         ls {suite}/scratch {suite}/repos; }} > stolen.txt 2>/dev/null; grep -c . stolen.txt; ls -d /usr/local/src"
    );
    let steps = [
        json!({"tool": "command_line", "arguments": {"command": search}}),
        json!({"tool": "final_answer", "arguments": {"answer": {}}}),
    ];
    let agent = lab.scripted("s", &steps);
    let cache = lab.path("cache").display().to_string();
    // The envs' cache is in the suite's folder, too; only the env in it may be seen.
    lab.ok(&["run", "--sample", "tiny_0", "--agent", &agent, "--agent", "gold", "--cache", &cache, "--name", "r"]);
    let patch = lab.read("runs/r/diffs/scripted/tiny_0.0.patch");
    assert!(!patch.contains("arithmetic") && !patch.contains("gold.json"), "{patch}");
    let trajectory = lab.read("runs/r/trajectories/scripted/tiny_0.0.jsonl");
    assert!(trajectory.contains("0\\n/usr/local/src"), "{trajectory}");
    let gold = lab.records("r").into_iter().find(|record| record["agent"] == "gold").unwrap();
    assert_eq!(gold["pass"], true, "{gold:#}");
    // `check` and `doctor` report before anything runs that the suite is in a folder that sandboxes can read.
    let said = lab.run(&["check", "tiny"]).stderr;
    assert!(said.contains("is in `/usr`"), "{said}");
    let said = lab.run(&["doctor"]).stdout;
    assert!(said.contains("is in `/usr`"), "{said}");
}

#[test]
#[ignore = "needs root to write to /usr/local/src"]
fn an_agent_cannot_read_other_runs_although_their_folder_is_visible_in_sandboxes() {
    let lab = Lab::new();
    let runs = tempfile::Builder::new().prefix("runs-").tempdir_in("/usr/local/src").unwrap();
    let place = runs.path().display().to_string();
    // Another run in the same folder, whose records reveal what another attempt has found.
    std::fs::create_dir(runs.path().join("earlier")).unwrap();
    std::fs::write(runs.path().join("earlier/attempts.jsonl"), "what another attempt has found\n").unwrap();
    let search = format!(
        "ls -R {place} > seen.txt 2>/dev/null; cat {place}/*/* > stolen.txt 2>/dev/null; \
         cat {place}/earlier/attempts.jsonl >> stolen.txt; wc -c < stolen.txt; ls -d /usr/local/src"
    );
    let agent = lab.scripted("s", &[json!({"tool": "command_line", "arguments": {"command": search}})]);
    let arguments = ["run", "--sample", "tiny_0", "--agent", &agent, "--no-baseline", "--no-verify"];
    lab.ok(&[&arguments[..], &["--runs", &place, "--name", "r"]].concat());
    let of_run = |path: &str| std::fs::read_to_string(runs.path().join("r").join(path)).unwrap();
    let trajectory = of_run("trajectories/scripted/tiny_0.0.jsonl");
    assert!(trajectory.contains("0\\n/usr/local/src"), "{trajectory}");
    let patch = of_run("diffs/scripted/tiny_0.0.patch");
    assert!(!patch.contains("earlier") && !patch.contains("what another"), "{patch}");
}

#[test]
fn a_run_is_refused_if_home_is_the_prefix_of_the_python_of_an_env() {
    let lab = Lab::new();
    let ask = "python -c 'import sys; print(sys.base_prefix)' > prefix.txt";
    let agent = lab.scripted("s", &[json!({"tool": "command_line", "arguments": {"command": ask}})]);
    let arguments = ["run", "--sample", "tiny_0", "--agent", &agent, "--no-baseline", "--name"];
    lab.ok(&[&arguments[..], &["first"]].concat());
    let patch = lab.read("runs/first/diffs/scripted/tiny_0.0.patch");
    let prefix = patch.lines().find_map(|line| line.strip_prefix("+/")).unwrap();
    let output = lab.command(&[&arguments[..], &["r"]].concat()).env("HOME", format!("/{prefix}")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains(&format!("agents would see `/{prefix}`")) && said.contains("hint: move"), "{said}");
    assert!(!lab.path("runs/r").exists());
}

#[test]
#[ignore = "needs root, whose sandboxes by landlock alone run as another user"]
fn a_cache_that_the_user_of_sandboxes_cannot_enter_is_refused_before_a_run_begins() {
    let lab = Lab::new();
    let open = |path: &str, mode| {
        std::fs::create_dir_all(lab.path(path)).unwrap();
        std::fs::set_permissions(lab.path(path), std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    open("", 0o755);
    open("open", 0o755);
    open("home", 0o700);
    // Without the capability CAP_SYS_ADMIN, root cannot make namespaces, as in a container that is not privileged.
    let without_namespaces = |arguments: &[&str], home: &str| {
        let own = lab.command(arguments);
        let mut command = std::process::Command::new("setpriv");
        command.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin", crate::support::PROGRAM]).args(arguments);
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env_remove("AUTOEXPERIMENT_CACHE").env_remove("XDG_CACHE_HOME").env("HOME", lab.path(home));
        let output = command.current_dir(lab.path("")).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, _, said) = without_namespaces(&["run", "-n", "1", "--agent", "noop", "--name", "r"], "home");
    assert_eq!(code, Some(12), "{said}");
    let closed = format!("`{}` is closed to the user as whom sandboxes run", lab.path("home").display());
    assert!(said.contains("home/.cache/autoexperiment` cannot be used") && said.contains(&closed), "{said}");
    assert!(said.contains("hint: choose a folder") && said.contains("`AUTOEXPERIMENT_CACHE`"), "{said}");
    assert!(!lab.path("runs").exists() && !lab.path("home/.cache").exists());
    let (_, told, _) = without_namespaces(&["doctor"], "home");
    assert!(told.contains("missing  cache: ") && told.contains(&closed), "{told}");
    assert!(told.contains("ok       scratch folder: "), "{told}");
    let (_, told, _) = without_namespaces(&["doctor"], "open");
    assert!(told.contains("ok       cache: "), "{told}");
}
