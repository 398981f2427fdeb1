//! Tests of ledgers that are continued, broken or forged.

use super::*;

fn payer(attempt: u32) -> Payer {
    Payer { agent: "react".into(), sample: "x_0".into(), attempt: Some(attempt), ..Payer::default() }
}

#[test]
fn unfinished_calls_count_as_reserved_and_all_ledgers_of_a_run_are_summed() {
    let folder = tempfile::tempdir().unwrap();
    assert!(books(folder.path()).unwrap().is_none());
    let usage = Usage { output: 7, ..Usage::default() };
    for (name, carried) in [("ledger.jsonl", 1.0), ("ledger-2.jsonl", 0.0)] {
        let ledger = Arc::new(Ledger::open(&folder.path().join(name)).unwrap());
        ledger.carry(carried, 0.5).unwrap();
        let tab = PayerLedger::new(ledger.clone(), payer(0));
        let first = tab.reserve(0.25).unwrap();
        let _cut_off = PayerLedger::new(ledger, payer(1)).reserve(0.125).unwrap();
        tab.record_cost(&first, 0.0625, usage).unwrap();
    }
    // A ledger that is opened again does not reuse call numbers, and its torn last line is removed.
    let path = folder.path().join("ledger.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"entry\":\"settled\",\"call\":1,\"dollars\":0.1");
    std::fs::write(&path, text).unwrap();
    let verifier = Payer { verifier: Some("model".into()), attempt: None, ..payer(0) };
    let tab = PayerLedger::new(Arc::new(Ledger::open(&path).unwrap()), verifier);
    let third = tab.reserve(1.0).unwrap();
    assert_eq!(third.call, 2);
    tab.record_cost(&third, 0.5, Usage::default()).unwrap();
    let books = books(folder.path()).unwrap().unwrap();
    assert_eq!(books.payers[&payer(0)], PaidTotals { settled: 0.125, open: 0.0, usage: Usage { output: 14, ..usage } });
    assert_eq!(books.payers[&payer(1)], PaidTotals { open: 0.25, ..PaidTotals::default() });
    assert_eq!((books.attempts().settled, books.attempts().open), (1.125, 0.25));
    assert_eq!((books.verifiers().dollars(), books.total().dollars()), (1.5, 2.875));
    assert_eq!(books.notes, Vec::<String>::new());
}

#[test]
fn no_line_of_a_ledger_can_lower_the_money_spent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.jsonl");
    let ledger = Arc::new(Ledger::open(&path).unwrap());
    let _cut_off = PayerLedger::new(ledger, payer(0)).reserve(0.25).unwrap();
    let before = std::fs::read_to_string(&path).unwrap();
    for line in [
        r#"{"entry":"settled","call":0,"dollars":-5.0,"usage":{"input":0,"output":0}}"#,
        r#"{"entry":"reserved","call":7,"agent":"react","sample":"x_0","attempt":0,"dollars":-5.0}"#,
        r#"{"entry":"carried","attempts":-5.0,"verifiers":0.0}"#,
        r#"{"entry":"carried","attempts":0.0,"verifiers":-1e300}"#,
    ] {
        std::fs::write(&path, format!("{before}{line}\n")).unwrap();
        let books = books(folder.path()).unwrap().unwrap();
        assert!((books.total().dollars() - 0.25).abs() < 1e-9, "{line}: {books:?}");
        assert_eq!(books.notes.len(), 1, "{line}");
    }
}

#[test]
fn probe_costs_count_for_no_attempt_or_verifier_and_free_probes_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.jsonl");
    let ledger = Ledger::open(&path).unwrap();
    ledger.probed(&ProbeCost::default()).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    let usage = Usage { input: 7, ..Usage::default() };
    ledger.probed(&ProbeCost { usage, cost: 0.5 }).unwrap();
    let books = books(folder.path()).unwrap().unwrap();
    assert_eq!((books.total().dollars(), books.total().usage.input, books.payers.len()), (0.5, 7, 0));
}

#[test]
fn a_broken_ledger_line_is_reported_and_the_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.jsonl");
    std::fs::write(&path, "garbage\n\n{\"entry\":\"carried\",\"attempts\":2.0,\"verifiers\":0.0}\n").unwrap();
    let books = books(folder.path()).unwrap().unwrap();
    assert_eq!((books.total().dollars(), books.notes.len()), (2.0, 1));
}

#[test]
fn without_a_writable_ledger_no_further_calls_are_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.jsonl");
    let ledger = Arc::new(Ledger::open(&path).unwrap());
    let tab = PayerLedger::new(ledger.clone(), payer(0));
    // The file is removed during the run.
    std::fs::remove_file(&path).unwrap();
    tab.reserve(1.0).unwrap_err();
    assert!(ledger.failed().is_some());
    tab.reserve(0.0).unwrap_err();
}
