use serde_json::json;

use super::*;

/// The rules to test: the relative rule with two tolerances, and the stochastic rule.
const RULES: [ToleranceRule; 3] =
    [ToleranceRule::Relative(0.05), ToleranceRule::Relative(1e-3), ToleranceRule::Named(NamedTolerance::Stochastic)];

/// Asks the Python comparison whether each number is close to a gold value.
fn in_python(cases: &[(Value, f64)], tolerance: &Tolerance) -> Vec<bool> {
    let code = "import json, sys\nfrom tolerance import is_close\ncases, tolerance = json.load(sys.stdin)\n\
                print(json.dumps([is_close(gold, got, tolerance) for gold, got in cases]))";
    let mut child = std::process::Command::new("/usr/bin/python3")
        .args(["-c", code])
        .current_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tolerance"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let asked = json!([cases, tolerance]).to_string();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), asked.as_bytes()).unwrap();
    let answered = child.wait_with_output().unwrap();
    assert!(answered.status.success());
    serde_json::from_slice(&answered.stdout).unwrap()
}

#[test]
fn numbers_are_compared_alike_in_rust_and_in_python() {
    let golds = [json!(40), json!(0), json!(-3), json!(40.0), json!(0.0), json!(-1e-12), json!(1.0), json!(3e300)];
    let shifts = [0.0, 1e-10, 1e-9, 0.05, 0.050_000_1, 0.1, 1.0, -2.0, 1e308];
    let cases: Vec<(Value, f64)> = golds
        .iter()
        .flat_map(|gold| {
            let number = gold.as_f64().unwrap();
            shifts.iter().flat_map(move |shift| [number + shift, number * (1.0 + shift)]).map(|got| (gold.clone(), got))
        })
        .filter(|(_, got)| got.is_finite())
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    for rule in RULES {
        for (counts, absolute) in [(0.0, default_absolute()), (0.05, 0.1)] {
            let tolerance = DeclaredTolerance { rule, counts, absolute }.bounds(&[]);
            let ours: Vec<bool> = cases
                .iter()
                .map(|(gold, got)| tolerance.compare(gold.as_number().unwrap(), &[], *got).fault.is_none())
                .collect();
            assert_eq!(in_python(&cases, &tolerance), ours, "{tolerance:?}");
            seen.insert(ours);
        }
    }
    assert_eq!(seen.len(), 4, "two relative tolerances and two of counts accept four sets of numbers");
}

#[test]
fn a_tolerance_rule_is_parsed_back_from_its_toml() {
    #[derive(Deserialize)]
    struct Declared {
        tolerance: ToleranceRule,
    }
    for rule in RULES {
        let text = format!("tolerance = {}", rule.in_toml());
        assert_eq!(toml::from_str::<Declared>(&text).unwrap().tolerance, rule, "{text}");
    }
}

#[test]
fn tolerances_outside_of_their_range_are_named() {
    let wrong = DeclaredTolerance { rule: ToleranceRule::Relative(0.0), counts: 1.0, absolute: f64::NAN };
    assert_eq!(
        wrong.faults(),
        [
            "tolerance 0 is not between 0 and 1",
            "count_tolerance 1 is not between 0 and 1",
            "absolute_tolerance must be 0 or more"
        ]
    );
    let right = DeclaredTolerance { rule: ToleranceRule::default(), counts: 0.0, absolute: 0.0 };
    assert_eq!(right.faults(), [""; 0]);
}
