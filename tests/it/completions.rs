//! Completions in real shells: names of papers, runs and agents.

use std::process::Command;

use crate::support::Lab;

/// Returns the lines that a shell prints when it runs this script, in which `$PROGRAM` is the program and `$SCRIPT` its
/// completions. Returns `None` if the shell is not installed.
fn told(lab: &Lab, shell: &str, script: &str) -> Option<Vec<String>> {
    lab.write("completions", &lab.ok(&["completions", shell]).stdout);
    let asked = lab.command(&[]);
    let program = asked.get_program().to_owned();
    let folder = std::path::Path::new(&program).parent().unwrap().display().to_string();
    let mut command = Command::new(shell);
    command.args(if shell == "zsh" { vec!["-f", "-c", script] } else { vec!["-c", script] });
    command.current_dir(lab.path("")).env("PROGRAM", &program).env("SCRIPT", lab.path("completions"));
    command.env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap()));
    command.env("HOME", lab.path(""));
    command.envs(asked.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let Ok(output) = command.output() else {
        println!("skipped: there is no {shell} here");
        return None;
    };
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    Some(stdout.lines().map(|line| line.split('\t').next().unwrap_or_default().trim().to_owned()).collect())
}

/// Returns the shell's completions at the end of a line.
fn offered(lab: &Lab, shell: &str, line: &str) -> Option<Vec<String>> {
    let script = match shell {
        "bash" => format!(
            "source \"$SCRIPT\"; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=($COMP_LINE); \
             [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=(''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _autoexperiment autoexperiment \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        ),
        "zsh" => format!(
            "compdef() {{ : }}; source \"$SCRIPT\"; line='{line}'; words=(${{(s: :)line}}); \
             [[ $line == *' ' ]] && words+=(''); CURRENT=$#words; PREFIX=$words[-1]; \
             _call_program() {{ shift; eval \"$@\" }}; compadd() {{ print -l -- $names }}; \
             _autoexperiment_generated() {{ print generated }}; _autoexperiment"
        ),
        _ => format!("source $SCRIPT; complete -C '{line}'"),
    };
    told(lab, shell, &script)
}

#[test]
fn shells_complete_papers_runs_and_agents_by_name() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--limit", "1", "--agent", "noop", "--name", "first", "--no-baseline"]);
    for shell in ["bash", "zsh", "fish"] {
        let Some(papers) = offered(&lab, shell, "autoexperiment run -p ti") else { continue };
        assert_eq!(papers, ["tiny"], "{shell}");
        let offered = |line: &str| offered(&lab, shell, line).unwrap();
        let runs = offered("autoexperiment report ");
        assert!(runs.contains(&"first".to_owned()) && runs.contains(&"latest".to_owned()), "{shell}: {runs:?}");
        let agents = offered("autoexperiment run --agent re");
        assert!(agents.contains(&"react".to_owned()), "{shell}: {agents:?}");
        let listed = offered("autoexperiment verify tiny,");
        assert!(!listed.contains(&"first".to_owned()), "{shell}: {listed:?}");
    }
    // Verbs and options are completed as well.
    let verbs = offered(&lab, "bash", "autoexperiment verif").unwrap();
    assert_eq!(verbs, ["verify"]);
    let options = offered(&lab, "bash", "autoexperiment report --js").unwrap();
    assert_eq!(options, ["--json"]);
}

#[test]
fn names_of_agents_after_a_colon_or_comma_are_completed_in_bash() {
    let lab = Lab::new();
    let agents = offered(&lab, "bash", "autoexperiment run --agent cli:cod").unwrap();
    assert_eq!(agents, ["codex"]);
    assert_eq!(lab.ok(&["complete", "--", "autoexperiment run --agent gold,no"]).stdout, "gold,noop\n");
    assert_eq!(lab.ok(&["complete", "--", "autoexperiment nothing"]).stdout, "");
    let help = lab.ok(&["--help"]).stdout;
    assert!(!help.lines().any(|line| line.trim_start().starts_with("complete ")), "{help}");
}
