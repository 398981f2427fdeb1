//! Tests of properties of scrubbing that hold for every text, and of decisions about single numbers that do not occur
//! in the excerpts of papers in `tests/scrub`.

use proptest::prelude::*;

use super::{MARKERS, MarkupFormat, ScrubOptions, ScrubRule, scrub};

const FORMATS: [MarkupFormat; 3] = [MarkupFormat::Markdown, MarkupFormat::Latex, MarkupFormat::Plain];

fn options(format: MarkupFormat) -> ScrubOptions<'static> {
    ScrubOptions { format, gold: &[] }
}

fn markdown(text: &str) -> String {
    scrub(text, &options(MarkupFormat::Markdown)).text
}

/// Generates a piece of text. Random papers consist of such pieces in any order.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "an accuracy of 93.4% ",
        "a learning rate of 0.1 ",
        "| a | 1.5 | 2 |\n",
        "|---|---|---|\n",
        "| Model | F1 | n |\n",
        "\n\n",
        "## 4. Results\n",
        "\\begin{tabular}{lc}\n",
        "A & 93.4 \\\\\n",
        "\\end{tabular}\n",
        "$x = 0.5$ ",
        "$93.4 \\pm 0.2$ ",
        "[3, 7] ",
        "(2017) ",
        "```\n",
        "    x = 1\n",
        "  A     B\n",
        "  ----- -----\n",
        "  1.5   2.5\n",
        "+---+---+\n",
        "0.3, 0.4 and 0.5 ",
        "from 0.2 to 0.7, ",
        "improves by 3.2 points. ",
        "trained for 90 epochs ",
        "2.5 times faster; ",
        "p < 0.01 ",
        "{0.1, 0.2} ",
        "\\textrm{[removed]}",
        "[removed]",
        "—",
        "% 0.12\n",
        "$",
        "`",
        "\\",
        "two-fold ",
        "of the 100 runs ",
        "94 ",
        "with ",
        "at 0.5 ",
        "---\n",
        "{",
        "}",
        "(",
        ")",
        "é",
        "−0.5 ",
        "1,234.5 ",
        "\\caption{F1 of 0.9} ",
        "\\\\[2pt]",
        "&",
        ": Table\n",
        "Table 1: Error 0.31.\n",
        "10^{-3} ",
        "1e-4 ",
        "<!-- 0.77 --> ",
        "<table><tr><td>0.61</td></tr></table>\n",
        "% \\begin{tabular}{lc}\n",
    ];
    prop_oneof![
        8 => proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        1 => "[ -~]{0,12}",
        1 => "\\PC{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn scrubbing_a_scrubbed_text_changes_nothing(
        pieces in prop::collection::vec(piece(), 0..40),
        format in proptest::sample::select(FORMATS.to_vec()),
    ) {
        let once = scrub(&pieces.concat(), &options(format)).text;
        let twice = scrub(&once, &options(format));
        prop_assert_eq!(twice.removed(), 0);
        prop_assert_eq!(once, twice.text);
    }

    #[test]
    fn scrubbing_replaces_numbers_and_leaves_all_other_text_unchanged(
        pieces in prop::collection::vec(piece(), 0..40),
        format in proptest::sample::select(FORMATS.to_vec()),
    ) {
        let text = pieces.concat();
        let scrubbed = scrub(&text, &options(format));
        let lines: Vec<&str> = text.split('\n').collect();
        let mut rest = text.as_str();
        let mut expected = String::new();
        for number in &scrubbed.numbers {
            let shown: String = lines[number.line - 1].chars().skip(number.column - 1).take(number.text.chars().count()).collect();
            prop_assert_eq!(&shown, &number.text);
            if number.removed {
                // Removed numbers come in the text's order; the text between them is unchanged.
                let at = text.len() - rest.len();
                let start = lines[..number.line - 1].iter().map(|line| line.len() + 1).sum::<usize>()
                    + lines[number.line - 1].chars().take(number.column - 1).map(char::len_utf8).sum::<usize>();
                expected.push_str(&text[at..start]);
                rest = &text[start + number.text.len()..];
                expected.push('\0');
            }
        }
        expected.push_str(rest);
        let mut out = scrubbed.text.as_str();
        for part in expected.split('\0').enumerate() {
            if part.0 > 0 {
                let marker = MARKERS.iter().find(|marker| out.starts_with(**marker));
                prop_assert!(marker.is_some());
                out = &out[marker.map_or(0, |marker| marker.len())..];
                out = if part.1.starts_with(' ') { out } else { out.trim_start_matches(' ') };
            }
            let padded = out.trim_start_matches(' ');
            let part = part.1.trim_start_matches(' ');
            prop_assert!(padded.starts_with(part), "{part:?} in {out:?}");
            out = &padded[part.len()..];
        }
    }
}

#[test]
fn scrubbing_a_long_text_of_one_repeated_pattern_ends_within_seconds() {
    for sign in [
        "$",
        "`",
        "<a",
        "[1",
        "(",
        "{",
        "1 ",
        "1, ",
        "0.5 and ",
        "\\begin{tabular}",
        "\\a{",
        "|",
        "+-+\n",
        "----- ---\n",
        "a ",
        "accuracy ",
        "]",
        "- ",
        "\n\n1",
        "\\cite[",
        "$$",
        "<!--",
        "±1 ",
        "—",
        "1-",
        "<table>\n",
        "<td>1",
        "1:1 ",
    ] {
        for format in FORMATS {
            let begun = std::time::Instant::now();
            let scrubbed = scrub(&sign.repeat(20_000 / sign.len()), &options(format));
            assert!(!scrubbed.text.is_empty());
            assert!(begun.elapsed().as_secs() < 5, "{sign:?} as {format:?}: {:?}", begun.elapsed());
        }
    }
}

#[test]
fn a_table_keeps_its_shape() {
    let table = "| Model | F1 |\n|---|---:|\n| ours-2 | 93.41 |\n";
    assert_eq!(markdown(table), "| Model | F1 |\n|---|---:|\n| ours-2 | —     |\n");
    let tabular =
        "\\begin{tabular}{lS[table-format=2.1]}\nModel & F1 \\\\\n\\midrule\nours-2 & 93.4 \\\\[2pt]\n\\end{tabular}\n";
    let scrubbed = scrub(tabular, &options(MarkupFormat::Latex)).text;
    assert_eq!(scrubbed, tabular.replace("93.4", "{---}"));
}

#[test]
fn results_in_html_tables_are_scrubbed_and_settings_and_model_names_are_kept() {
    let table = "<table>\n<tr><th colspan=\"1\">Model</th><th>F1</th><th>Layers</th></tr>\n\
                 <tr><td>ours-2</td><td>93.4</td><td>12</td></tr>\n</table>\n";
    assert_eq!(markdown(table), table.replace("93.4", "—"));
}

#[test]
fn a_result_in_a_latex_macro_is_removed() {
    let text = "\\documentclass[10pt]{article}\n\\newcommand{\\best}{93.4\\%}\n\\newcommand{\\half}[1]{0.5 #1}\n\\begin{document}\n\\end{document}\n";
    assert_eq!(scrub(text, &options(MarkupFormat::Latex)).text, text.replace("93.4", "\\textrm{[removed]}"));
    for definition in
        ["\\newcommand{\\acc}{\\textbf{93.4\\%}}", "\\renewcommand\\acc{93.4\\%\\xspace}", "\\def\\acc{93.4\\%}"]
    {
        let text =
            format!("{definition}\n\\definecolor{{a}}{{rgb}}{{0.5,0.5,1}}\n\\begin{{document}}\n\\end{{document}}\n");
        let scrubbed = scrub(&text, &options(MarkupFormat::Latex)).text;
        assert_eq!(scrubbed, text.replace("93.4", "\\textrm{[removed]}"));
    }
    let length = "\\newcommand{\\wide}{0.48\\textwidth}\n\\begin{document}\n\\end{document}\n";
    assert_eq!(scrub(length, &options(MarkupFormat::Latex)).text, length);
}

#[test]
fn a_siunitx_command_is_removed_with_its_number() {
    let text = "The accuracy improves to \\SI{93.4}{\\percent} with a learning rate of \\num{1e-4}.\n";
    let scrubbed = scrub(text, &options(MarkupFormat::Latex)).text;
    assert_eq!(scrubbed, text.replace("\\SI{93.4}{\\percent}", "\\textrm{[removed]}"));
}

#[test]
fn a_rounding_of_gold_is_removed_in_any_context() {
    let text = "We set the threshold to 0.8731 and use 12 trees.\n";
    assert_eq!(markdown(text), text);
    let scrubbed = scrub(text, &ScrubOptions { format: MarkupFormat::Markdown, gold: &[0.873_142, 12.0] });
    assert_eq!(scrubbed.text, "We set the threshold to [removed] and use 12 trees.\n");
    assert_eq!(scrubbed.numbers[0].rule, ScrubRule::Gold);
}

/// The settings in the table (learning rates and momenta) have three digits each. One of them agrees with one of 41
/// gold values, which may be chance.
#[test]
fn numbers_of_a_large_table_stay_if_they_may_agree_with_gold_by_chance() {
    let rows: Vec<String> =
        (0..60).map(|row| format!("| {row} | 0.{} | 0.{} |\n", 110 + 7 * row, 530 + 3 * row)).collect();
    let rows = rows.concat();
    let text = format!("| Task | Learning rate | Momentum |\n|---|---|---|\n{rows}");
    // 40 values that are not in the table, and 0.1102, which rounds to the table's learning rate 0.110.
    let gold: Vec<f64> = (0..40).map(|place| 0.801_5 + 0.005 * f64::from(place)).chain([0.110_2]).collect();
    assert_eq!(scrub(&text, &ScrubOptions { format: MarkupFormat::Markdown, gold: &gold }).removed(), 0);
    // In a text with few numbers, the learning rate 0.110 counts as a leak.
    let alone =
        scrub("We use a learning rate of 0.110.\n", &ScrubOptions { format: MarkupFormat::Markdown, gold: &gold });
    assert_eq!(alone.removed(), 1);
    // A number with five digits that agrees with gold is a leak even in a table of many settings.
    let precise =
        scrub(&text.replace("0.536", "0.53642"), &ScrubOptions { format: MarkupFormat::Markdown, gold: &[0.536_421] });
    assert_eq!(precise.removed(), 1);
}

#[test]
fn the_markup_format_is_recognised_by_extension_or_content() {
    let detect = |name: &str, text: &str| MarkupFormat::detect(std::path::Path::new(name), text);
    assert_eq!(detect("a.tex", "# x"), MarkupFormat::Latex);
    assert_eq!(detect("a.MD", "\\begin{document}"), MarkupFormat::Markdown);
    assert_eq!(detect("a.txt", "x\n\n# Results\n"), MarkupFormat::Markdown);
    assert_eq!(detect("a", "\\section{A}"), MarkupFormat::Latex);
    assert_eq!(detect("a.txt", "RESULTS\n\nText.\n"), MarkupFormat::Plain);
}

#[test]
fn a_percentage_equal_to_gold_is_removed_and_numbers_in_a_settings_comment_stay() {
    let text = "# T\n\n<!-- settings: 0.731 -->\n\nWe keep 54.6% of the points, as in step 0.731 of the schedule.\n";
    let options = |gold| ScrubOptions { format: MarkupFormat::Markdown, gold };
    let scrubbed = scrub(text, &options(&[0.546, 0.731][..]));
    assert!(!scrubbed.text.contains("54.6"), "{}", scrubbed.text);
    assert!(scrubbed.text.contains("step 0.731") && scrubbed.text.contains("settings: 0.731"), "{}", scrubbed.text);
}

/// Texts around a sentence, and the format of each.
const WRAPPERS: [(&str, &str, MarkupFormat); 12] = [
    ("%\\begin{equation}\n\\begin{equation} x \\end{equation}\n", "\n", MarkupFormat::Latex),
    ("\\begin{lstlisting}\n\\begin{lstlisting}\n\\end{lstlisting}\n\n", "\n", MarkupFormat::Latex),
    ("\\begin{CJK*}{a}{b}\n\\author{A \\\\ B}\n% R&D\n", "\n\\end{CJK*}\n", MarkupFormat::Latex),
    ("---\ntitle: A\nabstract: |\n  ", "\n---\n\nText.\n", MarkupFormat::Markdown),
    ("<table><caption>", "</caption><tr><td>a</td></tr></table>\n", MarkupFormat::Markdown),
    ("<table><tr><td>a</td></tr></table> ", "\n", MarkupFormat::Markdown),
    ("Text\n<table><tr><td>", "</td></tr></table>\n", MarkupFormat::Markdown),
    ("\\documentclass{a}\n\\abstract{", "}\n\\begin{document}\nText.\n\\end{document}\n", MarkupFormat::Latex),
    ("\\documentclass{a}\n\\usepackage{b}\n\\highlights{\\item ", "}\n\\begin{document}\n", MarkupFormat::Latex),
    ("\\begin{highlights}\n", "\n\\end{highlights}\n", MarkupFormat::Latex),
    ("\\begin{tblr}{ll}\nA & B \\\\\nC & ", " \\\\\n\\end{tblr}\n", MarkupFormat::Latex),
    ("\\begin{center}\n\\begin{minipage}{3cm}\n", "\n\\end{minipage}\n\\end{center}\n", MarkupFormat::Latex),
];

#[test]
fn a_result_in_a_sentence_is_removed_wherever_the_sentence_stands() {
    for (before, after, format) in WRAPPERS {
        let short = format!("{before}Accuracy: 87.65{after}");
        let is_front = before.starts_with("---") || before.contains("documentclass");
        let is_cell = before.ends_with("& ") || before.ends_with("<td>");
        let scrubbed = scrub(&short, &options(format)).text;
        // In a preamble and in front matter, short texts are mostly settings of the layout. A cell is judged by its table.
        assert!(is_front || is_cell || !scrubbed.contains("87.65"), "{scrubbed}");
        let percent = if format == MarkupFormat::Latex { "\\%" } else { "%" };
        let text = format!("{before}Our method reaches an accuracy of 93.41{percent} on the test set.{after}");
        let scrubbed = scrub(&text, &options(format)).text;
        assert!(!scrubbed.contains("93.41"), "{scrubbed}");
    }
}

#[test]
fn results_are_removed_from_tables_of_every_environment() {
    let rows = "Method & Accuracy \\\\ \\hline Base & 71.35 \\\\ dropout & 93.41 \\\\\n";
    let nested = "Method & \\begin{tabular}{c} Test \\\\ accuracy \\end{tabular} \\\\ \\hline Base & 71.35 \\\\ dropout & 93.41 \\\\\n";
    for name in ["tabular", "tblr", "longtblr", "NiceTabular", "tabu", "longtable"] {
        for body in [rows, nested] {
            let text =
                format!("\\section{{Data}}\n\\begin{{{name}}}{{lc}}\n{body}\\end{{{name}}}\nWe use 12.5 grams.\n");
            let scrubbed = scrub(&text, &options(MarkupFormat::Latex)).text;
            assert!(!scrubbed.contains("71.35") && !scrubbed.contains("93.41"), "{scrubbed}");
            assert!(scrubbed.contains("12.5"), "{scrubbed}");
        }
    }
    let plot =
        "\\begin{tikzpicture}[scale=0.75]\n\\addplot coordinates {(Ours,93.41) (Base,71.35)};\n\\end{tikzpicture}\n";
    let scrubbed = scrub(plot, &options(MarkupFormat::Latex)).text;
    assert!(scrubbed.contains("0.75") && !scrubbed.contains("93.41") && !scrubbed.contains("71.35"), "{scrubbed}");
    let matrix = "\\section{Results}\nLet $\\begin{pmatrix} 0.25 & 1.5 \\\\ 2.5 & 3.5 \\end{pmatrix}$ be given.\n";
    assert_eq!(scrub(matrix, &options(MarkupFormat::Latex)).text, matrix);
}

#[test]
fn unclosed_and_odd_layouts_do_no_harm() {
    for text in [
        "\\begin{tikzpicture} coordinates {(1,2) \u{e9}",
        "\\begin{tabular}",
        "\\begin{tblr}\\begin{tblr}&\\\\",
        "---\n:\n---\n",
    ] {
        for format in FORMATS {
            let _ = scrub(text, &options(format));
        }
    }
    let yaml = "---\nlearning_rate: 0.001\naccuracy: 0.5\n---\n\nText.\n";
    assert_eq!(markdown(yaml), yaml);
}

#[test]
fn metrics_with_a_number_in_their_name_are_recognised_in_tables_and_sentences() {
    for name in ["F1", "f1", "R@1", "P@10", "Hits@5", "nDCG@10", "mAP@0.5", "accuracy"] {
        let table =
            format!("## Data\n\n| Component | {name} |\n|---|---|\n| dropout | 86.02 |\n| momentum | 85.13 |\n");
        let scrubbed = markdown(&table);
        assert!(!scrubbed.contains("86.02") && !scrubbed.contains("85.13") && scrubbed.contains(name), "{scrubbed}");
        let sentence = format!("## Data\n\nOn this set, its {name} is 88.27 already.\n");
        let scrubbed = markdown(&sentence);
        assert!(!scrubbed.contains("88.27") && scrubbed.contains(name), "{scrubbed}");
    }
    for name in ["R2", "Top-5", "top-1 (%)"] {
        let table =
            format!("## Data\n\n| Component | {name} |\n|---|---|\n| dropout | 86.02 |\n| momentum | 85.13 |\n");
        assert!(!markdown(&table).contains("86.02"), "{}", markdown(&table));
    }
    let top = "## Data\n\n| Component | Top-1 (%) |\n|---|---|\n| dropout | 86.02 |\n| momentum | 85.13 |\n";
    assert!(!markdown(top).contains("86.02"), "{}", markdown(top));
    let others = "## Data\n\nWrite to a@1.org about the F16 and the region R2 of 88.27 mm.\n";
    assert_eq!(markdown(others), others);
}
