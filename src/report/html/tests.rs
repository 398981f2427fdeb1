use super::*;
use crate::agent::{End, Settings};
use crate::report::SummaryOptions;
use crate::report::figures::Condition;
use crate::run::family::ItemFacts;
use crate::run::{Outcome, VerdictSummary};
use crate::sample::masked;
use crate::verifier::stored::ChoiceRecord;

const STRANGER: &str = "</script><b>&\u{2028}'\"";

fn record(agent: &str, sample: &str, attempt: u32, pass: bool) -> Outcome {
    Outcome { pass, end: End::Answered, ..Outcome::blank(agent, &masked(sample), attempt) }
}

fn material(records: Vec<Outcome>) -> Material {
    let origins = records.iter().map(|record| Origin { run: 0, agent: record.agent.clone(), line: None }).collect();
    Material { title: format!("Run {STRANGER}"), records, origins, ..Material::default() }
}

fn nowhere(name: &str, _: &str) -> crate::error::Result<()> {
    panic!("`{name}` lies beside");
}

/// Returns about `bytes` bytes of incompressible text.
fn noise(bytes: usize) -> String {
    let mut state = 1_u64;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{state:016x}")
    })
    .take(bytes / 16)
    .collect()
}

#[test]
fn untrusted_text_is_never_markup() {
    let mut planted = record("a", "x_0", 0, true);
    planted.agent = STRANGER.into();
    planted.model = Some(STRANGER.into());
    let mut material = material(vec![planted]);
    material.notes.push(STRANGER.to_owned());
    material.runs.push(RunFacts {
        name: STRANGER.to_owned(),
        created: STRANGER.to_owned(),
        facts: vec![(STRANGER.to_owned(), STRANGER.to_owned())],
    });
    let paper = ItemFacts { title: STRANGER.to_owned(), text: Some(STRANGER.to_owned()), ..ItemFacts::default() };
    material.papers.insert(STRANGER.to_owned(), paper);
    let nothing = |_| SampleDetails::default();
    let html = page(&material, &Details::new(1, &nothing), "", &nowhere).unwrap();
    assert!(!html.contains("<b>&"), "{}", html.split("<b>&").next().unwrap_or_default());
    assert!(html.contains("&lt;b&gt;&amp;") && html.contains("\\u003cb\\u003e\\u0026\\u2028"));
    // There are as many closing as opening script tags, so no text inside a script element ended it early.
    assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
}

#[test]
fn the_security_policy_names_the_pages_own_script_and_style() {
    let nothing = |_| SampleDetails::default();
    let html = page(&material(Vec::new()), &Details::new(0, &nothing), "", &nowhere).unwrap();
    let script = html.rsplit_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
    let style = html.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    for part in [script, style] {
        let digest = pack::digest(part).replace('\'', "&#x27;").replace('/', "&#x2f;");
        assert!(html.contains(&digest), "{digest} in {html:.900}");
    }
    assert!(html.contains("no attempt has been stored yet"));
    assert!(!policy(false, false).contains("strict-dynamic") && policy(true, false).contains("connect-src 'self'"));
}

#[test]
fn trajectories_too_large_for_the_html_page_are_written_to_files_beside_the_page() {
    let material = material(vec![record("a", "x_0", 0, true)]);
    let with = |bytes: usize| {
        let of = move |_| {
            let event = serde_json::json!({ "event": "message", "content": noise(bytes) });
            let attempt = AttemptDetails { events: vec![event], ..AttemptDetails::default() };
            SampleDetails { attempts: vec![attempt], ..SampleDetails::default() }
        };
        let written = std::sync::Mutex::new(Vec::new());
        let beside = |name: &str, text: &str| {
            written.lock().unwrap().push((name.to_owned(), text.to_owned()));
            Ok(())
        };
        let html = page(&material, &Details::new(1, &of), "report.data", &beside).unwrap();
        (html, written.into_inner().unwrap())
    };
    let (small, beside) = with(10_000);
    assert!(beside.is_empty() && small.contains("chunk-t0"));
    let (large, beside) = with(8_000_000);
    // The sample's verdicts (`s0`) stay inside the page. Its trajectories (`t0`) are written next to the page.
    assert!(large.contains("chunk-s0") && !large.contains("chunk-t0"));
    assert!(large.len() < 500_000 && large.contains("strict-dynamic"));
    let [(name, text)] = beside.as_slice() else { panic!("{}", beside.len()) };
    assert!(name == "t0.js" && text.starts_with("autoexperimentChunk(\"t0\",\""));
}

#[test]
fn the_details_of_a_page_contain_the_key_of_that_page_only() {
    let key_and_details = |agents: &[&str]| {
        let material = material(agents.iter().map(|agent| record(agent, "x_0", 0, true)).collect());
        let of = |_| SampleDetails { attempts: vec![AttemptDetails::default()], ..SampleDetails::default() };
        let html = page(&material, &Details::new(1, &of), "", &nowhere).unwrap();
        let after = |text: &str, start: &str| text.split_once(start).unwrap().1.to_owned();
        let key = after(&html, "\"key\":\"").split_once('"').unwrap().0.to_owned();
        let chunk = |name: &str| {
            let packed = after(&after(&html, &format!("chunk-{name}\"")), ">").split_once('<').unwrap().0.to_owned();
            let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, packed.trim()).unwrap();
            let text = std::io::read_to_string(flate2::read::DeflateDecoder::new(bytes.as_slice())).unwrap();
            serde_json::from_str::<serde_json::Value>(&text).unwrap()
        };
        for name in ["s0", "t0"] {
            assert_eq!(chunk(name)["page"], key);
        }
        assert!(chunk("s0")["attempts"].is_array());
        key
    };
    assert_eq!(key_and_details(&["a"]), key_and_details(&["a"]));
    assert_ne!(key_and_details(&["a"]), key_and_details(&["a", "b"]));
}

#[test]
fn the_index_leaves_out_lost_records_that_were_replaced_and_lists_unrecorded_attempts() {
    let mut lost = record("a", "x_0", 0, false);
    lost.end = End::SandboxLost;
    let mut unsupported = record("b", "x_0,1", 1, false);
    unsupported.reported = Some(VerdictSummary { pass: true, ..VerdictSummary::default() });
    unsupported.verified = Some(VerdictSummary::default());
    let mut material = material(vec![lost, record("a", "x_0", 0, true), unsupported]);
    let origin = Origin { run: 0, agent: "b".into(), line: None };
    let sample = "x_0,1".to_owned();
    material.begun.push(UnrecordedAttempt { origin, agent: "b".to_owned(), model: None, sample, attempt: 0 });
    let found: Vec<_> = samples(&material)
        .into_iter()
        .map(|sample| {
            (sample.id, sample.n, sample.attempts.iter().map(|it| (it.attempt, it.state)).collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(
        found,
        [("x_0".to_owned(), 1, vec![(0, "pass")]), ("x_0,1".to_owned(), 2, vec![(0, "begun"), (1, "unsupported")])]
    );
}

#[test]
fn agents_whose_long_names_differ_at_the_end_are_separate_in_the_index() {
    let model = |size: &str| Some(format!("{}/{size}-instruct.gguf", "models-of-somebody".repeat(4)));
    let of = |size: &str| Outcome { model: model(size).map(Into::into), ..record("react", "x_0", 0, true) };
    let index = serde_json::to_value(index(&material(vec![of("0.5b"), of("1.5b")]))).unwrap();
    let names: Vec<_> = index["contenders"].as_array().unwrap().iter().map(|it| it["name"].to_string()).collect();
    assert!(names.len() == 2 && names[0].contains("/0.5b-") && names[1].contains("/1.5b-"), "{names:?}");
}

#[test]
fn figures_without_data_are_left_out_and_runs_with_different_step_limits_are_plotted_by_limit() {
    let mut records = Vec::new();
    for (run, steps) in [("small", 3_u32), ("large", 9)] {
        for i in 0..6 {
            let mut one = record(&format!("{run}/react"), &format!("x_{i}"), 0, i < steps);
            one.steps = steps.min(i + 1);
            one.model = Some("m".into());
            records.push(one);
        }
    }
    let mut material = material(records);
    material.options = SummaryOptions::default();
    let one_limit = overview(&material).unwrap();
    assert!(one_limit.contains("interactions (replies of the model) used, at most"));
    // Figures without data are left out.
    assert!(!one_limit.contains("Scaling in reasoning tokens") && !one_limit.contains("Kinds of context by n"));
    for (run, steps) in [("small", 3), ("large", 9)] {
        material.conditions.insert(format!("{run}/react"), condition("react", "react", steps));
    }
    let two_limits = overview(&material).unwrap();
    assert!(two_limits.contains("interactions allowed") && !two_limits.contains("used, at most"));
    assert!(!two_limits.contains("Kinds of context by n"));
}

#[test]
fn the_html_report_shows_the_results_of_attempts_that_verifiers_chose() {
    let records = vec![record("a", "x_0", 0, false), record("a", "x_0", 1, true)];
    let choice = ChoiceRecord {
        verifier: "v".to_owned(),
        agent: "a".to_owned(),
        model: None,
        sample: "x_0".to_owned(),
        attempts: vec![0, 1],
        chosen: Some(1),
        reason: String::new(),
        usage: crate::model::Usage::default(),
        cost: 0.0,
        unknown: 0,
        unreadable: 0,
    };
    let mut material = material(records);
    material.options.choices.push(choice);
    let html = overview(&material).unwrap();
    assert!(html.contains("chosen by v") && !html.contains("No verifier has chosen"), "{html}");
}

#[test]
fn the_figure_of_interactions_leaves_out_agents_without_a_model() {
    let attempts = |model: Option<&str>, agent: &str| {
        let record = |i: u32| Outcome {
            model: model.map(Into::into),
            steps: 3 + i,
            ..record(agent, &format!("x_{i}"), 0, true)
        };
        (0..4).map(record).collect::<Vec<_>>()
    };
    let alone = overview(&material(attempts(None, "scripted"))).unwrap();
    assert!(!alone.contains("Scaling in interactions") && !alone.contains("Cost against accuracy"));
    let both = material([attempts(None, "scripted"), attempts(Some("gpt-x"), "react")].concat());
    let both = overview(&both).unwrap();
    let figure = both.split_once("id=\"scaling-interactions\"").unwrap().1.split_once("</section>").unwrap().0;
    assert!(figure.contains("<td>react<") && !figure.contains("scripted"), "{figure}");
}

#[test]
fn an_agents_settings_are_described_by_context_reasoning_and_steps() {
    let given = condition("fixed+paper=full+repair=2+reasoning=512", "fixed:paper=full,reasoning=512,repair=2", 50);
    assert_eq!(given.base, "fixed+paper=full+repair=2");
    assert_eq!(given.context.as_deref(), Some("paper full, code bm25"));
    assert_eq!((given.reasoning_tokens, given.steps), (512, Some(50)));
    assert_eq!(condition("react-2", "react", 9).base, "react-2");
    assert_eq!(condition("gold", "gold", 9).context, None);
}

fn condition(label: &str, agent: &str, steps: u32) -> Condition {
    Condition::from_settings(label, &agent.parse().unwrap(), &Settings::default(), steps)
}

/// Returns the records of two agents with two models each. Each of these four contenders has one attempt at six samples
/// of each of two papers. `agent` is the name of the first agent.
fn several(agent: &str) -> Material {
    let mut records = Vec::new();
    for (agent, model, passes, cost) in
        [(agent, "m", 5, 0.5), (agent, "l", 4, 0.01), ("other", "m", 3, 0.2), ("other", "l", 2, 0.3)]
    {
        for i in 0..12_u32 {
            let paper = if i < 6 { "x" } else { "y" };
            let one = record(agent, &format!("{paper}_{i}"), 0, i % 6 < passes);
            records.push(Outcome { model: Some(model.into()), cost, ..one });
        }
    }
    material(records)
}

#[test]
fn a_page_about_several_contenders_has_a_leaderboard_and_results_by_model_and_by_paper() {
    let html = overview(&several("react")).unwrap();
    let section =
        |id: &str| html.split_once(&format!("id=\"{id}\"")).unwrap().1.split_once("</section>").unwrap().0.to_owned();
    let board = section("leaderboard");
    let first = board.split_once("<tbody>").unwrap().1.split_once("</tr>").unwrap().0.to_owned();
    assert!(first.contains(">react<") && first.contains(">0.50<") && first.contains("★"), "{first}");
    assert_eq!(board.matches('★').count(), 2, "{board}");
    assert!(section("cost-accuracy").contains("<svg"));
    assert!(section("agents-models").contains(">83.3<"));
    let papers = section("papers");
    assert!(
        papers.contains("<a href=\"#&#x2f;samples&#x2f;&#x2f;&#x2f;&#x2f;&#x2f;&#x2f;x\">x</a>")
            && papers.matches("<tr>").count() == 3,
        "{papers}"
    );
    assert!(html.contains("class=\"contenders\""));
    let mut tasks = several("react");
    tasks.options.intervals.group = "repo";
    let html = overview(&tasks).unwrap();
    assert!(html.contains("Results by repo") && html.contains(" of 2 repos, "), "{html}");
    assert!(html.contains("over samples of these repos") && !html.contains("paper's"), "{html}");
    // A page with a single contender has neither a leaderboard nor results by paper.
    let alone = overview(&material(vec![record("a", "x_0", 0, true)])).unwrap();
    assert!(!alone.contains("Leaderboard") && !alone.contains("Results by paper"));
}

#[test]
fn bidirectional_and_invisible_characters_are_escaped() {
    let name = format!("a\u{202e}b\u{200b}\u{e0041}{STRANGER}");
    let html = overview(&several(&name)).unwrap();
    for c in ['\u{202e}', '\u{200b}', '\u{e0041}', '\u{2028}'] {
        assert!(!html.contains(c), "{}", c.escape_default());
    }
    assert!(html.contains("a\\u{202e}b") && !html.contains("<b>&"));
}

/// Returns one section of the overview.
fn section_of(html: &str, id: &str) -> String {
    let (_, after) = html.split_once(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no `{id}` in {html}"));
    after.split_once("</section>").unwrap().0.to_owned()
}

#[test]
fn the_measures_of_a_family_are_shown_with_intervals_by_n_and_with_their_meanings() {
    use crate::run::family::MeasureFacts;
    let mut records = Vec::new();
    for (agent, hit) in [("weak", 2), ("strong", 7)] {
        for i in 0..16_u32 {
            let measures = [("landmarks", f64::from(u8::from(i % 8 < hit))), ("parameters", 3.0), ("novel", 0.5)];
            let measures = measures.map(|(name, value)| (name.to_owned(), value)).into();
            let verdict = VerdictSummary { score: Some(0.25), measures, ..VerdictSummary::default() };
            let mut one = record(agent, &format!("x_{i}"), 0, i % 8 < hit);
            one.n = (i / 8) as usize;
            one.verified = Some(verdict);
            records.push(one);
        }
    }
    let mut material = material(records);
    material.axis = "withheld layers".to_owned();
    material.measures = vec![
        MeasureFacts::share("verified_landmarks", "landmarks that were <reached>"),
        MeasureFacts::share("verified_absent", "nothing has it"),
        MeasureFacts::count("verified_parameters", "arguments"),
    ];
    for (sample, n, extent) in [("x_0", 0, "context: all of it"), ("x_8", 1, "1 withheld layer")] {
        let facts = SampleFacts {
            item: "x".to_owned(),
            cluster: "x".to_owned(),
            n,
            extent: extent.to_owned(),
            units: Vec::new(),
        };
        material.samples.insert(sample.to_owned(), facts);
    }
    let html = overview(&material).unwrap();
    let section = section_of(&html, "measures");
    let rows: Vec<&str> = section.split("<tr>").filter(|row| row.contains("<td")).collect();
    // The first rows show the score, then a measure that the family describes, then a measure that it does not
    // describe. If two agents have a measure, the better agent's row comes first.
    let names = ["credit", "credit", "verified_<wbr>landmarks", "verified_<wbr>landmarks", "verified_<wbr>novel"];
    assert!(rows.iter().zip(names).all(|(row, name)| row.contains(&format!(">{name}<"))), "{rows:?}");
    assert!(rows[2].contains(">strong<") && rows[2].contains("<td>87.5 [") && rows[3].contains(">weak<"), "{rows:?}");
    assert!(section.contains(">all n<") && section.contains(">n = 0<") && section.contains(">n = 1<"), "{section}");
    assert!(
        section.contains("landmarks that were &lt;reached&gt;") && !section.contains("nothing has it"),
        "{section}"
    );
    // Means of counts are shown as numbers, not as percentages.
    assert!(rows.last().unwrap().contains("<td>3.00</td>"), "{rows:?}");
    for id in ["measures", "results"] {
        let section = section_of(&html, id);
        assert!(section.contains("n = 0: context: all of it.") && !section.contains("n = 1: 1 withheld"), "{section}");
    }
    assert!(section_of(&html, "results").contains("the number of withheld layers"));
    // If no record has measures, the page has no section on measures.
    assert!(!overview(&several("react")).unwrap().contains("id=\"measures\""));
}

#[test]
fn tables_begin_with_the_best_contender_and_show_failures_before_costs() {
    let mut records = Vec::new();
    for (agent, passes) in [("a-weak", 1), ("b-strong", 11), ("c-middle", 6)] {
        for i in 0..12_u32 {
            let paper = if i < 6 { "hard" } else { "light" };
            let one = record(agent, &format!("{paper}_{i}"), 0, 12 - i <= passes);
            records.push(Outcome { model: Some("m".into()), n: (1 + i % 2) as usize, cost: 0.1, ..one });
        }
    }
    let html = overview(&material(records)).unwrap();
    for id in ["leaderboard", "results", "ends", "took"] {
        let section = section_of(&html, id);
        let place = |agent: &str| section.find(&format!(">{agent}<")).unwrap_or_else(|| panic!("{agent}: {section}"));
        let (best, middle, worst) = (place("b-<wbr>strong"), place("c-<wbr>middle"), place("a-<wbr>weak"));
        assert!(best < middle && middle < worst, "{id}: {section}");
    }
    let papers = section_of(&html, "papers");
    assert!(papers.find(">light<").unwrap() < papers.find(">hard<").unwrap(), "{papers}");
    let differences = section_of(&html, "differences");
    let first = differences.split("<td>").nth(1).unwrap();
    assert!(first.starts_with("b-<wbr>strong m<"), "{differences}");
    let place = |id: &str| html.find(&format!("id=\"{id}\"")).unwrap();
    assert!(place("ends") < place("took") && place("took") < place("cost-accuracy"));
    // The table of contents names each section of the page, and nothing else.
    let contents = html.split_once("class=\"toc\"").unwrap().1.split_once("</ul>").unwrap().0;
    let linked: Vec<&str> = contents.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(linked.len() >= 7 && linked.iter().all(|id| html.contains(&format!("id=\"{id}\""))), "{linked:?}");
}

#[test]
fn the_table_of_differences_shows_the_p_values_that_decide_the_ranks() {
    let mut records = Vec::new();
    for (agent, passes) in [("a", 20), ("b", 12), ("c", 11), ("d", 10), ("e", 9), ("f", 8)] {
        records.extend((0..20).map(|i| record(agent, &format!("x_{i}"), 0, i < passes)));
    }
    let mut material = material(records);
    material.options.intervals.population = crate::stats::Population::Papers;
    let how = material.options.intervals;
    let pairs = crate::report::compare(&crate::report::contenders(&material.records), true, false, how);
    let summary = crate::report::summarise(&material.records, &material.options);
    let places = crate::report::leaderboard(&summary, &pairs);
    let (table, legend) = overview::comparisons(&material, &places, &pairs);
    // With more than five contenders, the table has only the comparisons with the best one.
    assert_eq!((pairs.len(), table.rows.len()), (15, 5));
    let column = table.columns.iter().position(|name| name == "Holm p").unwrap();
    for row in &table.rows {
        let is_same = |first: &String, second: &String| (first, second) == (&row[0], &row[1]);
        let pair = pairs.iter().find(|it| is_same(&it.first, &it.second) || is_same(&it.second, &it.first)).unwrap();
        assert_eq!(row[column], crate::report::compare::p_value(pair.adjusted_p), "{row:?}");
    }
    assert!(legend.contains("adjusted for all pairs") && legend.contains("test over whole papers"), "{legend}");
}

#[test]
fn the_leaderboard_has_a_dash_for_a_contender_with_too_few_attempts_for_the_columns_k() {
    let mut records = Vec::new();
    for (agent, attempts) in [("five", 5), ("two", 2)] {
        for i in 0..4 {
            records.extend((0..attempts).map(|attempt| record(agent, &format!("x_{i}"), attempt, true)));
        }
    }
    let options = SummaryOptions { ks: vec![1, 2, 5], ..SummaryOptions::default() };
    let summary = crate::report::summarise(&records, &options);
    let table = board::board(&crate::report::leaderboard(&summary, &[]));
    let place = |name: &str| table.columns.iter().position(|column| column == name).unwrap();
    let row = |agent: &str| table.rows.iter().find(|row| row[0] == agent).unwrap();
    for column in ["pass@5 %", "pass^5 %"] {
        assert_eq!((&*row("five")[place(column)], &*row("two")[place(column)]), ("100.0", "–"), "{table:?}");
    }
}

#[test]
fn a_warning_in_the_notes_of_the_runs_is_among_the_first_lines() {
    let mut material = material(vec![record("a", "x_0", 0, true)]);
    material.notes.push("WARNING the runs differ in <something>".to_owned());
    let html = overview(&material).unwrap();
    let alert = html.split_once("class=\"alert\"").unwrap().1.split_once("</div>").unwrap().0;
    assert!(alert.contains("<li>the runs differ in &lt;something&gt;</li>"), "{alert}");
}

#[test]
fn the_page_has_no_literal_backticks_and_writes_small_p_values_in_digits() {
    let mut records = Vec::new();
    for (agent, passes) in [("good", true), ("bad", false)] {
        records.extend((0..40).map(|i| record(agent, &format!("x_{i}"), 0, passes)));
    }
    let mut material = material(records);
    material.notes.push("see `autoexperiment <resume>`".to_owned());
    let html = overview(&material).unwrap();
    assert!(!html.contains('`') && html.contains("<code>autoexperiment &lt;resume&gt;</code>"), "{html}");
    assert!(html.contains("p &lt; 0.0001") && !html.contains("1e-4"), "{html}");
    let differences = section_of(&html, "differences");
    assert!(differences.contains("<td>&lt;.0001</td>") && differences.contains("first pass@1 %"), "{differences}");
}

#[test]
fn the_index_says_how_each_attempt_ended() {
    let mut gave_up = record("a", "x_0", 1, false);
    gave_up.end = End::GaveUp;
    let mut material = material(vec![record("a", "x_0", 0, true), gave_up]);
    let origin = Origin { run: 0, agent: "a".into(), line: None };
    let sample = "x_0".to_owned();
    material.begun.push(UnrecordedAttempt { origin, agent: "a".to_owned(), model: None, sample, attempt: 2 });
    let index = serde_json::to_value(index(&material)).unwrap();
    assert_eq!(index["ends"], serde_json::json!(["answered", "gave_up", "not_finished"]));
    // Each attempt is stored as four numbers in a row: index of the contender, number of the attempt, state, and index
    // in `ends`.
    assert_eq!(index["samples"][0]["tries"], serde_json::json!([0, 0, 0, 0, 0, 1, 1, 1, 0, 2, 4, 2]));
}
