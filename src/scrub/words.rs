//! The vocabulary: words that indicate a result, a setting, a size or a reference.
//!
//! Words are compared in lower case and without plural and tense endings, by [`sense_of`].

use std::collections::HashMap;
use std::sync::LazyLock;

/// Kind of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionKind {
    /// Abstract, results, evaluation, conclusion.
    Results,
    /// Method, data, set-up, theory.
    Method,
    /// Anything else.
    Other,
    /// The list of references.
    Bibliography,
}

/// A word's meaning as evidence about the numbers near it: that they are results, or that they are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordSense {
    /// Name of something measured: accuracy, error, latency.
    Metric,
    /// Statement of a finding: improves, outperforms, drops.
    Claim,
    /// Name of something chosen: learning rate, threshold, width.
    Setting,
    /// A word that is often near a result, but also near other numbers: rate, variance, below.
    Hint,
    /// Statement of a choice or an action: set, train, repeat.
    Doing,
    /// Something counted: images, epochs, GPUs.
    Counted,
}

const METRICS: &str = "accuracy error loss perplexity bleu rouge meteor f1 auc auroc auprc map miou iou psnr ssim fid \
    recall precision specificity sensitivity score reward regret rmse mse mae nll ece brier likelihood correlation \
    pearson spearman kendall matthews nmi ari rand purity silhouette latency throughput runtime speedup utility \
    improvement reduction wer cer mcc kappa forgetting misclassification fps ap map rtf eer der dice mrr ndcg hit elo mape \
    smape mase bpd elbo kl opinion mos positive negative icc krippendorff cohen fleiss cronbach chrf cider \
    spice auprc aupr hausdorff lpips qps flops gflops winrate success";

const HINTS: &str = "potential inertia rank ranking return coverage gap bias variance overhead rate performance gain increase \
    decrease deviation delay slope odds median quality result agreement distortion discrepancy speed em \
    better worse higher lower faster slower fewer less more smaller larger best worst below above than about nearly \
    roughly average only up compare against versus significant come stay remain process rank take took agree observe \
    reach solve converge vanish require differ deviate find found show follow account large strong improved";

const CLAIMS: &str = "improve outperform reduce achieve obtain gain drop fall fell rise rose increase decrease lose lost \
    exceed beat surpass retain close cost yield win won shrink shrank grow grew lower raise save fail \
    prefer outscore attain boost double triple saturate report measure earn outrun lag trail levels bring halve add collapse plateau cuts";

const SETTINGS: &str = "learning batch dropout momentum decay temperature threshold tolerance seed epsilon smoothing width \
    depth dimension hyperparameter parameter setting default bandwidth regularisation regularization regularizer clip \
    clipping norm warmup warm patience lr hidden window level discount radius buffer horizon size kernel stride padding \
    beam penalty constant coefficient prior strength resolution budget fold memory noise scale range interval grid \
    probability schedule shrinkage band cap limit exponent initial weight symbol param hyperparam confidence \
    configuration distance integer uniform base shape";

const DOING: &str = "set use train fix choose chose chosen tune anneal initialise initialize sample draw drew drawn repeat \
    apply keep kept hold held split resize vary vari varied search select start begin restrict sweep multiply \
    divide truncate stop evaluate recommend replace lie let assume given every scale pad bound between equal \
    count clip";

const COUNTED: &str = "image example sample point epoch step iteration gpu tpu cpu core layer class block head unit dimension \
    feature token word sentence pair run seed trial replicate repetition round time pass game task dataset set data \
    parameter participant people person subject patient student user item row column pixel channel filter neighbour \
    neighbor cluster tree leave leaf node edge vertex graph patch model network member expert arm action state \
    environment episode transition frame video article document question query bin group fold split case click song \
    digit observation instance draw resample bootstrap permutation restart center centre centroid landmark component \
    basis atom operation evaluation candidate category label attribute machine worker thread byte bit year month week \
    day event merge symbol option level stage way quantile method algorithm part test problem system rater annotator listener speaker utterance \
    design gauge sensor country city dollar moment degree place string letter value entry coordinate";

static SORTS: LazyLock<HashMap<&'static str, WordSense>> = LazyLock::new(|| {
    let lists = [
        (COUNTED, WordSense::Counted),
        (DOING, WordSense::Doing),
        (CLAIMS, WordSense::Claim),
        (SETTINGS, WordSense::Setting),
        (HINTS, WordSense::Hint),
        (METRICS, WordSense::Metric),
    ];
    lists.iter().flat_map(|(list, sense_of)| list.split_whitespace().map(move |word| (word, *sense_of))).collect()
});

/// Returns the length of the name of a metric with a number in it, at the start of this text: `F1`, or a metric at a
/// rank or a threshold, such as `R@10` or `mAP@0.5`. `None` if there is no such name.
pub(super) fn numbered_metric(text: &str) -> Option<usize> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let digits = |from: usize| from + text.bytes().skip(from).take_while(u8::is_ascii_digit).count();
    let end = if text.as_bytes().get(letters) == Some(&b'@') {
        let whole = digits(letters + 1);
        let decimals = digits(whole + 1);
        if text.as_bytes().get(whole) == Some(&b'.') && decimals > whole + 1 { decimals } else { whole }
    } else {
        letters + 1
    };
    let name = text.get(..end)?;
    let is_known = letters > 0 && (name.contains('@') && end > letters + 1 || matches!(name, "F1" | "f1"));
    (is_known && !text[end..].starts_with(char::is_alphanumeric)).then_some(end)
}

/// Returns what a word indicates; `None` if nothing.
pub(super) fn sense_of(word: &str) -> Option<WordSense> {
    if word.contains(|c: char| c.is_ascii_digit()) && numbered_metric(word) == Some(word.len()) {
        return Some(WordSense::Metric);
    }
    let word = word.to_lowercase();
    stems(&word).find_map(|stem| SORTS.get(stem.as_str()).copied())
}

/// Whether the word, with or without its ending, names something counted, even if it also has another meaning.
pub(super) fn is_counted(word: &str) -> bool {
    static COUNTED_WORDS: LazyLock<std::collections::HashSet<&'static str>> =
        LazyLock::new(|| COUNTED.split_whitespace().collect());
    let word = word.to_lowercase();
    stems(&word).any(|stem| COUNTED_WORDS.contains(stem.as_str()))
}

/// Whether a word, as the name of a column or row, names something counted. Words for uses of data, such as "test", are
/// excluded.
pub(super) fn is_counted_name(word: &str) -> bool {
    const OTHERS: [&str; 14] = [
        "test",
        "set",
        "model",
        "method",
        "algorithm",
        "system",
        "problem",
        "task",
        "case",
        "part",
        "level",
        "stage",
        "split",
        "time",
    ];
    is_counted(word) && !OTHERS.contains(&word.to_lowercase().trim_end_matches('s'))
}

/// Returns the word itself, then versions without endings.
fn stems(word: &str) -> impl Iterator<Item = String> + '_ {
    const ENDINGS: [(&str, &str); 12] = [
        ("", ""),
        ("'s", ""),
        ("s", ""),
        ("es", ""),
        ("ies", "y"),
        ("ied", "y"),
        ("ed", ""),
        ("ed", "e"),
        ("ing", ""),
        ("ing", "e"),
        ("er", ""),
        ("d", ""),
    ];
    let endings = ENDINGS.iter().filter_map(move |(ending, instead)| {
        let stem = word.strip_suffix(ending)?;
        (stem.len() > 2 || ending.is_empty()).then(|| format!("{stem}{instead}"))
    });
    // Undo the doubled consonant of "dropped" or "cutting".
    let doubled = ["ed", "ing"].iter().filter_map(move |ending| {
        let stem = word.strip_suffix(ending)?;
        let mut letters = stem.bytes().rev();
        (stem.is_ascii() && stem.len() > 3 && letters.next() == letters.next())
            .then(|| stem[..stem.len() - 1].to_owned())
    });
    endings.chain(doubled)
}

/// Whether a word before a number makes it a reference to a part of the text.
pub(super) fn is_reference(word: &str) -> bool {
    matches!(
        word.trim_end_matches('.').to_lowercase().as_str(),
        "section"
            | "sections"
            | "sec"
            | "secs"
            | "figure"
            | "figures"
            | "fig"
            | "figs"
            | "table"
            | "tables"
            | "tab"
            | "equation"
            | "equations"
            | "eq"
            | "eqs"
            | "theorem"
            | "theorems"
            | "lemma"
            | "lemmas"
            | "claim"
            | "proposition"
            | "corollary"
            | "algorithm"
            | "algorithms"
            | "appendix"
            | "chapter"
            | "chapters"
            | "definition"
            | "assumption"
            | "line"
            | "lines"
            | "page"
            | "pages"
            | "pp"
            | "vol"
            | "volume"
            | "no"
            | "issue"
            | "part"
            | "footnote"
            | "example"
            | "remark"
            | "condition"
            | "property"
            | "panel"
            | "lncs"
            | "experiment"
            | "hypothesis"
            | "case"
            | "step"
            | "phase"
            | "stage"
            | "category"
            | "class"
            | "supplement"
    )
}

/// Whether a word is the name of a program, machine or the like, followed by its version or model.
pub(super) fn is_versioned(word: &str) -> bool {
    matches!(
        word.to_lowercase().as_str(),
        "version"
            | "versions"
            | "release"
            | "python"
            | "pytorch"
            | "torch"
            | "tensorflow"
            | "jax"
            | "keras"
            | "cuda"
            | "cudnn"
            | "numpy"
            | "scipy"
            | "learn"
            | "sklearn"
            | "pandas"
            | "kernel"
            | "linux"
            | "ubuntu"
            | "debian"
            | "mujoco"
            | "gym"
            | "transformers"
            | "java"
            | "matlab"
            | "julia"
            | "gcc"
            | "rtx"
            | "gtx"
            | "spark"
            | "xgboost"
            | "lightgbm"
            | "windows"
            | "macos"
            | "rtxa"
            | "v"
            | "ver"
    )
}

/// Whether a word is a unit of purchased or configured quantities, never of measured results.
pub(super) fn is_hardware_unit(word: &str) -> bool {
    matches!(
        word,
        "GB" | "MB"
            | "KB"
            | "kB"
            | "TB"
            | "GiB"
            | "MiB"
            | "GHz"
            | "MHz"
            | "kHz"
            | "Hz"
            | "mm"
            | "cm"
            | "pt"
            | "em"
            | "ex"
            | "px"
            | "in"
            | "KiB"
            | "bit"
            | "bits"
            | "V"
            | "W"
            | "gigabytes"
            | "megabytes"
    )
}

/// Whether a word is a unit of time.
pub(super) fn is_time_unit(word: &str) -> bool {
    matches!(
        word,
        "ms" | "s"
            | "sec"
            | "secs"
            | "second"
            | "seconds"
            | "min"
            | "mins"
            | "minute"
            | "minutes"
            | "h"
            | "hr"
            | "hrs"
            | "hour"
            | "hours"
            | "µs"
            | "μs"
            | "us"
            | "ns"
            | "millisecond"
            | "milliseconds"
            | "microseconds"
            | "days"
            | "day"
    )
}

/// Whether a word is a month.
pub(super) fn is_month(word: &str) -> bool {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = word.to_lowercase();
    word.len() > 2 && MONTHS.iter().any(|month| *month == word || (word.len() == 3 && month.starts_with(&word)))
}

/// Whether a word is a comparative that can follow "2.5 times", such as "faster".
pub(super) fn is_comparative(word: &str) -> bool {
    matches!(
        word.to_lowercase().as_str(),
        "faster"
            | "slower"
            | "fewer"
            | "less"
            | "more"
            | "smaller"
            | "larger"
            | "cheaper"
            | "as"
            | "higher"
            | "lower"
            | "better"
            | "worse"
            | "longer"
            | "shorter"
            | "speedup"
            | "speed"
            | "improvement"
            | "reduction"
            | "acceleration"
            | "bigger"
            | "greater"
            | "increase"
            | "decrease"
    )
}

/// Whether a symbol is a statistic, such as a p-value, a correlation or a measure of agreement.
pub(super) fn is_statistic(symbol: &str) -> bool {
    matches!(
        symbol,
        "p" | "P"
            | "rho"
            | "ρ"
            | "kappa"
            | "κ"
            | "r"
            | "R²"
            | "η²"
            | "SD"
            | "SE"
            | "SEM"
            | "AUC"
            | "F1"
            | "eta"
            | "χ²"
            | "ACC"
            | "BLEU"
            | "NMI"
            | "ARI"
    )
}

/// Whether a word before an integer makes it an identifier rather than an amount: lag 5, epoch 30.
pub(super) fn is_ordinal(word: &str) -> bool {
    matches!(
        word.to_lowercase().trim_end_matches('s'),
        "lag" | "epoch" | "round" | "layer" | "horizon" | "order" | "degree" | "level" | "iteration" | "position"
    )
}

/// Whether a word is a spelt-out number that can begin a ratio, such as "two-fold" or "three times faster".
pub(super) fn is_spelt_number(word: &str) -> bool {
    matches!(
        word.to_lowercase().as_str(),
        "two" | "three" | "four" | "five" | "six" | "seven" | "eight" | "nine" | "ten" | "twenty" | "fifty" | "hundred"
    )
}

/// Returns the section that a heading starts; `None` if the heading is unspecific.
pub(super) fn section(heading: &str) -> Option<SectionKind> {
    let heading = heading.to_lowercase();
    let names = |list: &[&str]| list.iter().any(|word| heading.contains(word));
    if names(&["references", "bibliography"]) {
        Some(SectionKind::Bibliography)
    } else if names(&[
        "result",
        "evaluation",
        "finding",
        "ablation",
        "comparison",
        "discussion",
        "conclusion",
        "abstract",
        "summary",
    ]) {
        Some(SectionKind::Results)
    } else if names(&[
        "method",
        "model",
        "setup",
        "set-up",
        "setting",
        "training",
        "algorithm",
        "background",
        "hyper",
        "implementation",
        "data",
        "prelim",
        "theor",
        "proof",
        "bound",
        "protocol",
        "architecture",
        "notation",
        "appendix",
        "detail",
    ]) {
        Some(SectionKind::Method)
    } else if names(&["experiment", "analysis", "study", "performance"]) {
        Some(SectionKind::Results)
    } else {
        None
    }
}
