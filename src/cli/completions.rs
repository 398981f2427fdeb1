//! `autoexperiment completions`: shell completions. Verbs and options are in the script; for names of papers, runs and
//! agents, the script calls `autoexperiment complete` while the user types.

use clap::CommandFactory;
use clap_complete::Shell;

use super::shared::print;
use crate::error::{Error, Result};

/// Print shell completions, which also complete names of papers, runs and agents
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment completions bash >~/.local/share/bash-completion/completions/autoexperiment\n  autoexperiment completions zsh >~/.zfunc/_autoexperiment\n  autoexperiment completions fish >~/.config/fish/completions/autoexperiment.fish"
)]
pub struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Bash's completion function. It offers the names that `autoexperiment complete` prints, or clap's completions if it
/// prints none. Bash treats `:` and `=` as ends of words and replaces only what follows the last of them, so the text
/// before is removed from the names.
const BASH: &str = r#"
_autoexperiment() {
    local line="${COMP_LINE:0:COMP_POINT}" names word cut
    mapfile -t names < <("$1" complete -- "$line" 2>/dev/null)
    if ((${#names[@]})); then
        word="${line##*[[:space:]]}"
        cut="${word%"${word##*[:=]}"}"
        COMPREPLY=("${names[@]#"$cut"}")
        return
    fi
    _autoexperiment_generated "$@"
}
"#;

/// Same as [`BASH`], for zsh.
const ZSH: &str = r#"
_autoexperiment() {
    local -a names
    names=(${(f)"$(_call_program names ${words[1]} complete -- ${(qq):-"${(j: :)words[1,CURRENT-1]} $PREFIX"} 2>/dev/null)"})
    if (( $#names )); then
        compadd -a names
    else
        _autoexperiment_generated "$@"
    fi
}
"#;

/// Line that is appended to clap's completions for fish. With it, fish also offers the names that `autoexperiment
/// complete` prints.
const FISH: &str = "complete -c autoexperiment -a '(autoexperiment complete -- (commandline -cp) 2>/dev/null)'\n";

/// Adds the call of `autoexperiment complete` to each line of clap's script that declares an option with a value. After
/// such an option, fish offers only the values that are in the option's own line.
fn fish(script: &str) -> String {
    let names = FISH.trim_start_matches("complete -c autoexperiment");
    let line = |line: &str| if line.ends_with(" -r") { format!("{line}{names}") } else { format!("{line}\n") };
    script.lines().map(line).collect::<String>() + FISH
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "autoexperiment", &mut text);
    let text =
        String::from_utf8(text).map_err(|error| Error::internal("the completions are not UTF-8").because(error))?;
    print(&match arguments.shell {
        Shell::Bash => with_names(&text, BASH, "\nif [[ \"${BASH_VERSINFO[0]}\""),
        Shell::Zsh => with_names(&text, ZSH, "\nif [ \"$funcstack[1]\""),
        Shell::Fish => fish(&text),
        _ => text,
    })
}

/// Inserts the completion function `ours` before `end` in the generated script. The script's own function is renamed,
/// so that `ours` takes its place and can call it.
fn with_names(script: &str, ours: &str, end: &str) -> String {
    let renamed = script.replacen("\n_autoexperiment() {", "\n_autoexperiment_generated() {", 1);
    let renamed = match renamed.strip_prefix("_autoexperiment() {") {
        Some(rest) => format!("_autoexperiment_generated() {{{rest}"),
        None => renamed,
    };
    match renamed.rfind(end) {
        Some(at) => format!("{}{ours}{}", &renamed[..at], &renamed[at..]),
        None => renamed + ours,
    }
}
