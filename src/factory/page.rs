//! `factory.html`: a page that lists the packages of a suite, each with the numbers of tests and functions after each
//! stage of making tasks from the package.

use std::collections::BTreeMap;

use minijinja::Environment;
use minijinja::value::Serde;
use serde_json::{Value, json};

use super::list::FactoryList;
use crate::error::{Error, Result};

/// Renders the page from the contents of `factory.json`.
///
/// # Errors
/// Kind `Internal` if the template fails.
pub fn page(list: &FactoryList) -> Result<String> {
    let mut dropped: BTreeMap<&str, usize> = BTreeMap::new();
    let mut left_out: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in &list.packages {
        for (reason, functions) in &entry.funnel.dropped {
            *dropped.entry(reason).or_default() += functions.len();
        }
        for (reason, count) in &entry.funnel.tests_left_out {
            *left_out.entry(reason).or_default() += count;
        }
    }
    let by_count = |counts: BTreeMap<&str, usize>| {
        let mut counts: Vec<(String, usize)> =
            counts.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect();
        counts.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        counts
    };
    let packages: Vec<Value> = list
        .packages
        .iter()
        .map(|entry| {
            let evidence = entry.measured.iter().flat_map(|measured| &measured.evidence.functions);
            let functions: Vec<Value> = evidence
                .map(|(at, one)| json!({"at": at, "mutants": one.mutants, "killed": one.killed, "containment": one.containment}))
                .collect();
            let vendored: Vec<&str> = entry.vendored.iter().map(|record| record.package.as_str()).collect();
            json!({
                "vendored": vendored, "left_out": entry.left_out,
                "has_uninstalled": !entry.vendored.is_empty() || !entry.left_out.is_empty(),
                "package": entry.package, "name": entry.name, "version": entry.version, "funnel": entry.funnel,
                "minutes": entry.minutes, "licence": entry.licence, "source": entry.source, "functions": functions,
            })
        })
        .collect();
    let refused: Vec<Value> = list
        .packages
        .iter()
        .filter_map(|entry| Some(json!({"package": entry.package, "refused": entry.refused.as_ref()?})))
        .collect();
    let sum = |of: &dyn Fn(&super::list::PackageEntry) -> u64| list.packages.iter().map(of).sum::<u64>();
    let total = json!({
        "kept": sum(&|entry| entry.funnel.kept as u64),
        "given": sum(&|entry| u64::from(entry.measured.is_some())),
        "minutes": list.packages.iter().map(|entry| entry.minutes).sum::<f64>().round(),
        "megabytes": sum(&|entry| entry.bytes) >> 20,
        "env_megabytes": sum(&|entry| entry.env_bytes) >> 20,
    });
    let failed = |error: minijinja::Error| Error::internal("failed to render the page of packages").because(error);
    let mut environment = Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    // The `.html` suffix makes minijinja escape values.
    environment.add_template("page.html", include_str!("page.html")).map_err(failed)?;
    let template = environment.get_template("page.html").map_err(failed)?;
    let values = json!({
        "packages": packages, "refused": refused, "total": total, "dropped": by_count(dropped),
        "left_out": by_count(left_out), "program": list.program, "settings": list.settings,
    });
    template.render(minijinja::Value::from(Serde(values))).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factory::list::{FactorySettings, PackageEntry};
    use crate::factory::source::SourceRecord;

    #[test]
    fn texts_of_packages_are_escaped_on_the_page() {
        let mut list = FactoryList::new(FactorySettings::small());
        let mut entry =
            PackageEntry { package: "<b>x".into(), refused: Some("why & <i>".into()), ..PackageEntry::default() };
        entry.funnel.dropped.insert("trivial".into(), vec!["a".into(), "b".into()]);
        entry.vendored.push(SourceRecord { package: "docopt<i>==1".into(), ..SourceRecord::default() });
        entry.left_out.push("curio: no wheel & more".into());
        list.packages.push(entry);
        let html = page(&list).unwrap();
        assert!(html.contains("&lt;b&gt;x") && html.contains("why &amp; &lt;i&gt;") && !html.contains("<b>x"));
        assert!(html.contains("<td>trivial</td><td>2</td>") && html.contains("0 functions of 0 of 1 packages"));
        assert!(html.contains("copied into the repo") && html.contains("docopt&lt;i&gt;==1"));
        assert!(html.contains("left out") && html.contains("curio: no wheel &amp; more"));
    }
}
