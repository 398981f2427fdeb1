//! Cleans outputs as SUPER's agent does: removes progress bars and compiler messages. Scoring uses the complete
//! outputs.

use std::sync::LazyLock;

use regex::Regex;

/// A progress bar of tqdm or pip.
static PROGRESS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^.{0,80}\d{1,3}%\s?\|.*\|.*\[.*\]\s*$|━{4}|^\s*\|[█▉▊▋▌▍▎▏]+[█▉▊▋▌▍▎▏ ]*\|").ok());

/// A compiler's command line or warning.
static COMPILER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let parts = [
        r"^\s*(\S*/)?(\w+-linux-gnu-)?(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|gfortran)\s+-",
        r"^\S+\.(c|cc|cpp|cxx|h|hpp|pyx|f|f90):\d+(:\d+)?:\s+(warning|note):",
        r"^\S+\.(c|cc|cpp|cxx|h|hpp|pyx):\s+In (member )?function\b",
    ];
    Regex::new(&parts.join("|")).ok()
});

/// A source line or marker that a compiler prints below a warning.
static SOURCE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\s*\d*\s*\|").ok());

/// Removes progress bars and compiler messages from a text. If a line was overwritten (`\r`), its last state is kept.
pub fn clean(text: &str) -> String {
    let hits =
        |expression: &LazyLock<Option<Regex>>, line: &str| (**expression).as_ref().is_some_and(|it| it.is_match(line));
    let mut kept = Vec::new();
    let mut compiles = false;
    for line in text.split('\n') {
        let line = line.trim_end_matches('\r');
        let line = line.rsplit('\r').next().unwrap_or(line);
        compiles = hits(&COMPILER, line) || compiles && hits(&SOURCE, line);
        if !compiles && !hits(&PROGRESS, line) {
            kept.push(line);
        }
    }
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_bars_and_compiler_messages_are_left_out_and_everything_else_stays() {
        let shown = "begin\n 10%|█         | 1/10 [00:01<00:09]\rloss 3\n100%|██████████| 10/10 [00:10<00:00,  1.00it/s]\n   \
                     ━━━━━━━━━━━━━━━ 2.1/2.1 MB 9.8 MB/s\ngcc -O2 -c a.c -o a.o\na.c:3:5: warning: unused variable 'x'\n    \
                     3 | int x;\n      |     ^\nerror: command failed\nepoch 10% done | loss 0.5\n| a | b |";
        assert_eq!(clean(shown), "begin\nloss 3\nerror: command failed\nepoch 10% done | loss 0.5\n| a | b |");
        assert_eq!(clean("a\r\nb\r\n"), "a\nb\n");
    }
}
