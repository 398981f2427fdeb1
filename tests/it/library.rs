//! A whole run of the tiny suite from Rust, without the command line. The only other program that runs is the init, the
//! first process of each sandbox.

use std::sync::Mutex;

use autoexperiment::error::FailureKind;
use autoexperiment::report;
use autoexperiment::run::event::{Observer, RunEvent};
use autoexperiment::run::machine::{Machine, MachineOptions};
use autoexperiment::run::scheduler::RunOutcome;
use autoexperiment::run::{Configuration, Store, VerifierSpec, outcomes};
use autoexperiment::session::{Run, RunFolder, SessionOptions};
use tokio_util::sync::CancellationToken;

use crate::support::{Lab, prepared};

/// Records the names of events and, if `stops` is set, stops the run when the first attempt ends.
#[derive(Default)]
struct Watch {
    seen: Mutex<Vec<&'static str>>,
    stops: Option<CancellationToken>,
}

impl Observer for Watch {
    fn on(&self, event: RunEvent) {
        let name = match event {
            RunEvent::Stage(_) => "stage",
            RunEvent::Planned { .. } => "planned",
            RunEvent::Started { .. } => "started",
            RunEvent::Finished(_) => {
                if let Some(cancel) = &self.stops {
                    cancel.cancel();
                }
                "finished"
            }
            _ => return,
        };
        self.seen.lock().unwrap().push(name);
    }
}

impl Watch {
    fn count(&self, name: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|seen| **seen == name).count()
    }
}

async fn options(lab: &Lab) -> SessionOptions {
    let machine =
        MachineOptions { cache: prepared::cache(), scratch: lab.path("scratch"), ..MachineOptions::local().unwrap() };
    SessionOptions::on(Machine::open(&machine).await.unwrap())
}

fn configuration(lab: &Lab) -> Configuration {
    let mut configuration = Configuration::new(&lab.path(""));
    configuration.papers = vec!["tiny".to_owned()];
    configuration.agents = vec!["gold".parse().unwrap(), "noop".parse().unwrap()];
    configuration.k = 2;
    configuration.verifiers = vec![VerifierSpec::Majority];
    configuration
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_made_from_rust_returns_its_records() {
    let lab = Lab::new();
    let folder = lab.path("runs/r");
    let run = Run::open(configuration(&lab), RunFolder::New(folder.clone()), options(&lab).await).unwrap();
    assert!(!folder.exists(), "opening writes nothing");
    let watch = Watch::default();
    let finished = run.execute(&watch, &CancellationToken::new()).await.unwrap();
    assert_eq!(finished.outcome, RunOutcome::Complete);
    assert_eq!((&finished.folder, finished.unverified.is_none(), finished.any_failed()), (&folder, true, true));
    // Each of 2 agents makes 2 attempts at each of 4 samples.
    assert_eq!(finished.records.len(), 16);
    assert!(finished.records.iter().all(|record| record.pass == (record.agent == "gold")));
    assert_eq!(finished.choices.len(), 8);
    assert_eq!(finished.planned.iter().map(|planned| planned.attempts).sum::<usize>(), 16);
    assert_eq!((watch.count("planned"), watch.count("started"), watch.count("finished")), (1, 16, 16));
    assert!(watch.count("stage") > 0);
    let options_of = report::SummaryOptions { planned: finished.planned, ..report::SummaryOptions::default() };
    let table = report::console(&report::summarise(&outcomes(&finished.records), &options_of));
    assert!(table.contains("gold") && table.contains("noop"), "{table}");
    // The store contains the returned records, and the name is now taken.
    let (store, stored) = Store::open(&folder).unwrap();
    assert_eq!((store.records().unwrap(), stored.sessions.len()), (finished.records, 1));
    let again = Run::open(stored.configuration, RunFolder::New(folder), options(&lab).await);
    assert_eq!(again.map(drop).unwrap_err().kind, FailureKind::Taken);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_stopped_ends_with_the_outcome_interrupted_and_resumes_from_its_store() {
    let lab = Lab::new();
    let folder = lab.path("runs/r");
    let mut configuration = configuration(&lab);
    configuration.jobs = 1;
    let new = |name: &str| RunFolder::New(lab.path(name));
    // Cancel a run before its first attempt: it leaves no folder.
    let cancel = CancellationToken::new();
    cancel.cancel();
    let run = Run::open(configuration.clone(), new("runs/r"), options(&lab).await).unwrap();
    let finished = run.execute(&Watch::default(), &cancel).await.unwrap();
    assert_eq!((finished.outcome, finished.records.len(), folder.exists()), (RunOutcome::NotStarted, 0, false));
    // Cancel the run after its first attempt.
    let cancel = CancellationToken::new();
    let run = Run::open(configuration, new("runs/r"), options(&lab).await).unwrap();
    let watch = Watch { stops: Some(cancel.clone()), ..Watch::default() };
    let finished = run.execute(&watch, &cancel).await.unwrap();
    assert_eq!(finished.outcome, RunOutcome::Interrupted);
    let kept = finished.records.iter().filter(|record| !record.is_infrastructure()).count();
    assert!((1..16).contains(&kept) && finished.choices.is_empty(), "{kept}");
    // Resume the run to the end.
    let (store, stored) = Store::open(&folder).unwrap();
    let run = Run::resume(store, stored, lab.path(""), options(&lab).await).unwrap();
    let watch = Watch::default();
    let finished = run.execute(&watch, &CancellationToken::new()).await.unwrap();
    assert_eq!((finished.outcome, watch.count("finished")), (RunOutcome::Complete, 16 - kept));
    assert_eq!(Store::open(&folder).unwrap().1.sessions.len(), 2);
}
