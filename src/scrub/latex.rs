//! LaTeX syntax: commands, arguments, and braces.

/// Returns the character that a command prints, such as `±` for `pm`.
pub(super) fn sign(name: &str) -> Option<char> {
    Some(match name {
        "pm" | "mp" | "textpm" => '±',
        "times" | "texttimes" | "cdot" => '×',
        "approx" | "sim" | "simeq" => '≈',
        "leq" | "le" | "lt" | "ll" => '<',
        "geq" | "ge" | "gt" | "gg" => '>',
        "S" => '§',
        "percent" => '%',
        "to" | "rightarrow" => '→',
        "in" => '∈',
        _ => return None,
    })
}

/// Returns the number of arguments of a command that are skipped, because they contain no prose; `None` if all
/// arguments are read.
pub(super) fn opaque_arguments(name: &str) -> Option<usize> {
    Some(match name {
        "cite" | "citep" | "citet" | "citealp" | "citeauthor" | "citeyear" | "parencite" | "textcite" | "autocite"
        | "ref" | "eqref" | "autoref" | "cref" | "Cref" | "pageref" | "label" | "includegraphics" | "vspace"
        | "hspace" | "url" | "input" | "include" | "bibliography" | "bibliographystyle" | "usepackage"
        | "documentclass" | "cline" | "cmidrule" | "rowcolor" | "cellcolor" | "columncolor" | "color" | "textcolor"
        | "href" | "end" | "addlinespace" | "bibitem" | "thispagestyle" | "pagestyle" | "vskip" | "hskip" | "verb"
        | "tag" | "hyperref" | "begin" | "mathbb" | "mathcal" => 1,
        "setlength" | "addtolength" | "setcounter" | "fontsize" | "scalebox" | "multicolumn" | "multirow"
        | "resizebox" | "rule" | "definecolor" | "raisebox" => 2,
        _ => return None,
    })
}

/// Returns how many arguments with units follow the first argument, a number, in a command of siunitx, such as 1 for
/// `\SI{5}{\second}`. Returns `None` for other commands.
pub(super) fn number_arguments(name: &str) -> Option<usize> {
    match name {
        "num" => Some(0),
        "SI" | "qty" => Some(1),
        _ => None,
    }
}

/// Whether a command affects only the appearance.
pub(super) fn is_font(name: &str) -> bool {
    name.starts_with("math")
        || name.starts_with("text")
        || matches!(name, "bf" | "it" | "rm" | "left" | "right" | "boldsymbol" | "bm" | "big" | "Big" | "quad" | "em")
}

/// Advances `at` past a star, optional arguments, and up to `count` arguments in braces.
pub(super) fn arguments(text: &str, at: &mut usize, count: usize) {
    let bytes = text.as_bytes();
    if bytes.get(*at) == Some(&b'*') {
        *at += 1;
    }
    let mut taken = 0;
    loop {
        match bytes.get(*at) {
            Some(b'[') => match text[*at..].find(']') {
                Some(end) => *at += end + 1,
                None => return,
            },
            // An argument in parentheses, as in `cmidrule(lr){1-2}`.
            Some(b'(') if taken < count => match text[*at..].find(')') {
                Some(end) => *at += end + 1,
                None => return,
            },
            Some(b'{') if taken < count => {
                *at = braces(text, *at);
                taken += 1;
            }
            _ => return,
        }
    }
}

/// Returns the position after the brace that closes the brace at `at`; the end of the text if it is never closed.
pub(super) fn braces(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut place = at;
    while place < bytes.len() {
        match bytes[place] {
            b'\\' => place += 1,
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return place + 1;
                }
            }
            _ => {}
        }
        place += 1;
    }
    bytes.len()
}
