//! A second family passes through every part of the program that does not know families by name: it is run, verified,
//! resumed, rescored, reported, shown in a browser, chosen among and exported, without code outside `example_family.rs`
//! except the line that lists it.

use std::io::Read as _;
use std::path::Path;

use autoexperiment::error::FailureKind;
use autoexperiment::export::{ExportSource, inspect, table};
use autoexperiment::report;
use autoexperiment::run::event::{Observer, RunEvent};
use autoexperiment::run::family::{Families, ScoringBasis, rescored};
use autoexperiment::run::machine::{Machine, MachineOptions};
use autoexperiment::run::scheduler::RunOutcome;
use autoexperiment::run::{AttemptRecord, Catalogue, Configuration, Store, VerifierSpec, outcomes};
use autoexperiment::session::{Finished, Run, RunFolder, SessionOptions};
use autoexperiment::stats::Intervals;
use autoexperiment::view::RunReader;
use tokio_util::sync::CancellationToken;

use crate::example_family::Puzzles;

struct Silent;

impl Observer for Silent {
    fn on(&self, _event: RunEvent) {}
}

/// Returns the program's families, and the family of this test.
fn families() -> Families {
    Families::standard().with(Puzzles)
}

async fn options(base: &Path) -> SessionOptions {
    let machine =
        MachineOptions { cache: base.join("cache"), scratch: base.join("scratch"), ..MachineOptions::local().unwrap() };
    SessionOptions { families: families(), ..SessionOptions::on(Machine::open(&machine).await.unwrap()) }
}

/// Configures `gold`, `noop`, and a script that gets one number of three right and reports two.
fn configuration(base: &Path) -> Configuration {
    let script = base.join("script.jsonl");
    let write = r#"{"tool": "command_line", "arguments": {"command": "echo 'echo least=2 most=1 sum=1' > answer.sh"}}"#;
    let answer = r#"{"tool": "final_answer", "arguments": {"answer": {"numbers": {"least": 2, "most": 9, "sum": 0}}}}"#;
    std::fs::write(&script, format!("{write}\n{answer}\n")).unwrap();
    let agents = ["gold".to_owned(), "noop".to_owned(), format!("scripted:{}", script.display())];
    let mut configuration = Configuration::new(base);
    "puzzles".clone_into(&mut configuration.family);
    configuration.papers = vec!["shell.extremes".to_owned()];
    configuration.draw.n = vec![0, 2];
    configuration.agents = agents.iter().map(|agent| agent.parse().unwrap()).collect();
    configuration.k = 2;
    configuration.verifiers = vec![VerifierSpec::Majority];
    configuration
}

async fn run(base: &Path) -> Finished {
    let folder = RunFolder::New(base.join("runs/r"));
    let run = Run::open(configuration(base), folder, options(base).await).unwrap();
    run.execute(&Silent, &CancellationToken::new()).await.unwrap()
}

fn scores(record: &AttemptRecord) -> (Option<f64>, Option<f64>) {
    let score = |verdict: &Option<autoexperiment::score::Verdict>| verdict.as_ref().and_then(|it| it.score);
    (score(&record.reported), score(&record.verified))
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_of_an_added_family_are_run_resumed_rescored_reported_viewed_and_exported() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path();
    let finished = run(base).await;

    // The run is made and verified: one sample without withheld hints, three with two of them withheld.
    assert_eq!((&finished.outcome, finished.records.len()), (&RunOutcome::Complete, 4 * 3 * 2));
    for record in &finished.records {
        assert_eq!((record.family.as_str(), record.paper.as_str()), ("puzzles", "shell"));
        let expected = match record.agent.as_str() {
            "gold" => (true, (Some(1.0), Some(1.0))),
            "noop" => (false, (Some(0.0), Some(0.0))),
            _ => (false, (Some(2.0 / 3.0), Some(1.0 / 3.0))),
        };
        assert_eq!((record.pass, scores(record)), expected, "{record:?}");
        assert!(record.n == 0 || record.n == 2);
    }
    assert_eq!(finished.choices.len(), 4 * 3);

    // The run resumes: attempts without a record are made again, and no others.
    let attempts = finished.folder.join("attempts.jsonl");
    let lines = std::fs::read_to_string(&attempts).unwrap();
    let kept: String = lines.split_inclusive('\n').take(5).collect();
    std::fs::write(&attempts, kept).unwrap();
    let (store, stored) = Store::open(&finished.folder).unwrap();
    assert_eq!(stored.configuration.family, "puzzles");
    let resumed = Run::resume(store, stored, base.to_owned(), options(base).await).unwrap();
    let resumed = resumed.execute(&Silent, &CancellationToken::new()).await.unwrap();
    assert_eq!((resumed.outcome, resumed.records.len()), (RunOutcome::Complete, finished.records.len()));

    // Scoring again gives the same verdicts.
    let catalogue = Catalogue::load(&families(), base, ScoringBasis::default(), &resumed.records).whole().unwrap();
    for record in &resumed.records {
        let (sample, item) = catalogue.find(record).unwrap();
        assert_eq!(rescored(item, &sample, record).unwrap(), *record);
    }

    // The report shows the run.
    let options = report::SummaryOptions { planned: resumed.planned, ..report::SummaryOptions::default() };
    let table = report::console(&report::summarise(&outcomes(&resumed.records), &options));
    for part in ["gold", "noop", "scripted", "score", "33.3", "100.0", "Measures", "verified_right  3.000"] {
        assert!(table.contains(part), "{part}: {table}");
    }

    // The browser's page shows the run, including the details of a sample.
    let folders = vec![resumed.folder.clone()];
    let gathered = RunReader::new(families(), folders, None, Vec::new(), Intervals::default()).gather().unwrap();
    assert_eq!(gathered.material.notes, Vec::<String>::new());
    assert_eq!(gathered.material.papers["shell.extremes"].title, "Puzzle shell.extremes");
    assert_eq!(gathered.samples(), 4);
    let of = gathered.details();
    let details = (0..4).map(of).find(|details| details.id == "shell.extremes_0,1").unwrap();
    let asked = details.asked.unwrap();
    assert!(!asked.contains("`sort -n`") && asked.contains("paste -sd+"), "{asked}");
    assert_eq!((details.problem, details.attempts.len()), (None, 6));
    assert!(details.attempts.iter().all(|attempt| attempt.problems.is_empty() && !attempt.events.is_empty()));

    // The run can be exported.
    let source = ExportSource::open(&resumed.folder, &families()).unwrap();
    let logs = inspect::export(&source, &base.join("logs")).unwrap();
    assert_eq!((logs.len(), source.notes()), (3, Vec::new()));
    let mut archive = zip::ZipArchive::new(std::fs::File::open(&logs[0]).unwrap()).unwrap();
    let mut text = String::new();
    archive.by_name("samples/shell.extremes_0,1_epoch_1.json").unwrap().read_to_string(&mut text).unwrap();
    let sample: serde_json::Value = serde_json::from_str(&text).unwrap();
    let tables = table::export(&source, table::TableFormat::Csv, &base.join("tables")).unwrap();
    let attempts = std::fs::read_to_string(&tables[0]).unwrap();
    let heading = attempts.lines().next().unwrap();
    assert!(
        heading.ends_with(
            ",answer,family,score,lost,lines,cached_checks,cached_replies,gpu,reported_right,verified_right"
        ),
        "{heading}"
    );
    assert_eq!(
        attempts.lines().filter(|line| line.ends_with(",puzzles,1.0,false,,0,0,,3.0,3.0")).count(),
        4 * 2,
        "{attempts}"
    );
    assert_eq!(sample["input"], "Sample `shell.extremes_0,1` of `shell`, 2 of its hints withheld.");
    assert_eq!(sample["scores"]["verified"]["metadata"]["score"], 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_a_family_lacks_are_refused_before_anything_is_spent() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path();
    let refused = async |change: fn(&mut Configuration)| {
        let mut configuration = configuration(base);
        change(&mut configuration);
        let run = Run::open(configuration, RunFolder::New(base.join("runs/x")), options(base).await);
        let error = run.map(drop).unwrap_err();
        assert_eq!(error.kind, FailureKind::Usage);
        error.message
    };
    let agent = refused(|it| it.agents = vec!["mutant:0.5".parse().unwrap()]).await;
    assert_eq!(agent, "agent `mutant-0.5` cannot attempt samples of the family `puzzles`");
    assert_eq!(refused(|it| it.family = "riddles".into()).await, "there is no family `riddles`");
    let forger = refused(|it| it.agents = vec!["forger".parse().unwrap()]).await;
    assert_eq!(forger, "agent `forger` cannot attempt samples of the family `puzzles`");
    let hint = refused(|it| it.draw.samples = vec!["shell.extremes_7".into()]).await;
    assert_eq!(hint, "puzzle `shell.extremes` has no hint 7");
}
