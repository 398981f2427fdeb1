//! The report's pages as people and assistive programs read them: they follow the rules of accessibility, print well,
//! appear fast, and show hostile names without harm.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::Lab;
use crate::support::browser::Browser;
use crate::view::{VIEWS, Viewer, block_on, lab, page, picture};

/// Returns the source of axe-core's rules, installed from npm.
fn axe() -> String {
    const PACKAGE: &str = "axe-core@4.14.1";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe");
    let source = folder.join("node_modules/axe-core/axe.min.js");
    if !source.exists() {
        fs::create_dir_all(&folder).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&folder).arg(PACKAGE);
        assert!(npm.output().unwrap().status.success(), "`{PACKAGE}` cannot be installed");
    }
    fs::read_to_string(source).unwrap()
}

/// Returns the rules that the current page breaks, with the elements.
async fn broken_rules(browser: &Browser) -> Value {
    let run = "axe.run(document, { resultTypes: ['violations'] }).then((found) => JSON.stringify(found.violations.map((one) => [one.id, one.nodes.slice(0, 4).map((node) => node.html.slice(0, 160) + ' ' + (node.any[0] || node.all[0] || node.none[0] || {}).message)])))";
    let asked = json!({ "expression": run, "awaitPromise": true, "returnByValue": true });
    let answer = browser.devtools("Runtime.evaluate", asked).await;
    serde_json::from_str(answer["result"]["value"].as_str().unwrap_or_else(|| panic!("{answer}"))).unwrap()
}

/// Writes a run that consists of an `attempts.jsonl` only: two agents with two models each, and one agent without a
/// model, at samples of two papers.
fn board(lab: &Lab, name: &str, agent: &str, samples: usize) {
    let template = lab.read("runs/r/attempts.jsonl");
    let template: Value = serde_json::from_str(template.lines().next().unwrap()).unwrap();
    let mut lines = Vec::new();
    let contenders = [
        (agent, Some("large-model"), 9, 0.4),
        (agent, Some("small-model"), 6, 0.004),
        ("fixed", Some("large-model"), 7, 0.2),
        ("fixed", Some("small-model"), 3, 0.01),
        ("gold", None, 10, 0.0),
    ];
    for (agent, model, passes, cost) in contenders {
        for number in 0..samples * 2 {
            let (sample, attempt) = (number / 2, number % 2);
            let mut one = template.clone();
            let paper = ["tiny", "another-paper"][sample % 2];
            one["agent"] = agent.into();
            if let Some(model) = model {
                one["model"] = model.into();
            }
            one["paper"] = paper.into();
            one["sample"] = format!("{paper}_{}", sample / 2).into();
            one["n"] = (1 + sample % 3).into();
            one["attempt"] = attempt.into();
            one["pass"] = (number * 7 % 10 < passes).into();
            one["cost"] = (cost * (1.0 + 0.1 * (number % 3) as f64)).into();
            one["steps"] = (3 + number % 9).into();
            lines.push(one);
        }
    }
    lab.write(&format!("runs/{name}/attempts.jsonl"), &crate::support::json_lines(&lines));
}

#[test]
#[ignore = "needs chromium, chromedriver and npm"]
fn no_page_breaks_a_rule_of_accessibility() {
    let axe = axe();
    let lab = lab();
    board(&lab, "board", "react", 24);
    let address = page(&lab, &["r"]);
    let viewer = Viewer::start(&lab, &["r", "board"]);
    block_on(async {
        let browser = Browser::start().await;
        let mut broken = Vec::new();
        for address in [&address, &viewer.address] {
            for (width, height) in [(1280, 900), (390, 844)] {
                for dark in [false, true] {
                    browser.look(width, height, dark).await;
                    browser.open(address).await;
                    browser.devtools("Runtime.evaluate", json!({ "expression": axe })).await;
                    for (view, hash, _) in VIEWS {
                        browser.go(hash).await;
                        browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true").await;
                        let found = broken_rules(&browser).await;
                        if found != json!([]) {
                            broken.push(format!("{view} at {width}, dark {dark}: {found}"));
                        }
                    }
                }
            }
        }
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    });
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn tables_fit_a_window_and_show_rates_first_on_a_phone() {
    let lab = lab();
    board(&lab, "board", "react", 24);
    let address = page(&lab, &["board", "--label", "large-model=Large", "--label", "react=ReAct"]);
    block_on(async {
        let browser = Browser::start().await;
        browser.look(1280, 900, false).await;
        browser.open(&address).await;
        browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true").await;
        let wide = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.closest('section').id)";
        assert_eq!(browser.eval(wide).await, json!([]));
        // The labels that replace the names of agents and models are in the page's first lines, in tables and in
        // pictures.
        let told = browser.eval("document.querySelector('.contenders').innerText").await;
        assert!(told.as_str().unwrap().contains("ReAct Large"), "{told}");
        assert!(
            !browser.eval("document.querySelector('#overview').innerHTML").await.to_string().contains("large-model")
        );
        // Clicks on a heading sort the table by number, first in descending and then in ascending order. The order
        // stays when the page is redrawn.
        let column = "[...document.querySelectorAll('#leaderboard tbody tr')].map((row) => Number.parseFloat(row.cells[3].textContent))";
        let click = "[...document.querySelectorAll('#leaderboard th button')].find((one) => one.textContent.startsWith('pass@1')).click()";
        let sorted = |values: &Value, way: f64| {
            values
                .as_array()
                .unwrap()
                .windows(2)
                .all(|pair| way * (pair[1].as_f64().unwrap() - pair[0].as_f64().unwrap()) >= 0.0)
        };
        browser.run(click).await;
        assert!(sorted(&browser.eval(column).await, -1.0));
        browser.run(click).await;
        assert!(sorted(&browser.eval(column).await, 1.0));
        // A click on a paper leads to its samples.
        browser.run("document.querySelector('#papers tbody a').click()").await;
        browser.until("document.querySelector('#page h1')?.textContent === 'Samples'").await;
        let found = browser.eval("[...document.querySelectorAll('#page tbody tr')].every((row) => row.textContent.includes('another-paper'))").await;
        assert_eq!(found, json!(true));
        browser.look(390, 844, false).await;
        browser.open(&address).await;
        for section in ["leaderboard", "results", "papers"] {
            let first_rate = format!(
                "(() => {{ const row = document.querySelector('#{section} tbody tr'); const cell = [...row.cells].find((one) => /\\[/.test(one.textContent)); return cell.getBoundingClientRect().left; }})()"
            );
            let left = browser.eval(&first_rate).await.as_f64().unwrap();
            assert!(left < 260.0, "{section}: rates begin at {left}");
            let sticky = format!("getComputedStyle(document.querySelector('#{section} tbody td')).position");
            assert_eq!(browser.eval(&sticky).await, json!("sticky"), "{section}");
        }
        let shot =
            browser.devtools("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true })).await;
        keep(&shot, "board-390.png");
        browser.look(1280, 900, false).await;
        browser.open(&address).await;
        let shot =
            browser.devtools("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true })).await;
        keep(&shot, "board-1280.png");
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

fn keep(shot: &Value, name: &str) {
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, shot["data"].as_str().unwrap());
    fs::write(picture(name), bytes.unwrap()).unwrap();
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn a_printed_page_shows_everything_uncut_and_unfolded_but_no_navigation_or_tools() {
    let lab = lab();
    board(&lab, "board", "react", 24);
    let address = page(&lab, &["r", "board"]);
    block_on(async {
        let browser = Browser::start().await;
        // A4 with margins of a centimetre, at 96 dots per inch.
        browser.look(718, 1000, false).await;
        for (name, hash) in [("overview", "#/"), ("sample", "#/sample/tiny_0/2.0")] {
            browser.open(&address).await;
            browser.go(hash).await;
            browser.devtools("Emulation.setEmulatedMedia", json!({ "media": "print" })).await;
            browser.run("dispatchEvent(new Event('beforeprint'))").await;
            let shown =
                "[...document.querySelectorAll('nav, .tools, #said')].filter((one) => one.offsetHeight > 0).length";
            assert_eq!(browser.eval(shown).await, json!(0), "{name}");
            let folded = "[...document.querySelectorAll('details:not(.lazy)')].filter((one) => !one.open).length";
            assert_eq!(browser.eval(folded).await, json!(0), "{name}");
            let cut = "[...document.querySelectorAll('main:not([hidden]) :is(.scroll, .chart, .code, .text, pre, table, svg)')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 || (one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0)).map((one) => one.outerHTML.slice(0, 120))";
            assert_eq!(browser.eval(cut).await, json!([]), "{name}");
            browser.run("dispatchEvent(new Event('afterprint'))").await;
            let paper = json!({ "paperWidth": 8.27, "paperHeight": 11.69, "marginTop": 0.4, "marginBottom": 0.4, "marginLeft": 0.4, "marginRight": 0.4, "printBackground": false });
            let pdf = browser.devtools("Page.printToPDF", paper).await;
            let bytes =
                base64::Engine::decode(&base64::engine::general_purpose::STANDARD, pdf["data"].as_str().unwrap())
                    .unwrap();
            fs::write(picture(&format!("{name}.pdf")), &bytes).unwrap();
            let pages = String::from_utf8_lossy(&bytes).matches("/Type /Page\n").count();
            assert!(
                bytes.starts_with(b"%PDF-") && (2..60).contains(&pages),
                "{name}: {pages} pages, {} bytes",
                bytes.len()
            );
            // The page opens its folded sections for printing and closes them afterwards.
            browser.until("document.querySelectorAll('details[data-folded]').length === 0").await;
        }
    });
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn the_first_paint_of_5_000_attempts_takes_less_than_a_second() {
    let lab = lab();
    board(&lab, "many", "react", 500);
    let trajectory = walkdir::WalkDir::new(lab.path("runs/r/trajectories")).into_iter().flatten();
    let trajectory = trajectory.filter(|entry| entry.file_type().is_file());
    let trajectory = trajectory.max_by_key(|entry| entry.metadata().map_or(0, |it| it.len())).unwrap();
    let events = fs::read_to_string(trajectory.path()).unwrap().repeat(5);
    let lines = lab.read("runs/many/attempts.jsonl");
    for line in lines.lines() {
        let one: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| one[key].as_str().unwrap().to_owned();
        let path = format!("runs/many/trajectories/{}/{}.{}.jsonl", text("agent"), text("sample"), one["attempt"]);
        lab.write(&path, &events);
    }
    let address = page(&lab, &["many"]);
    let size = fs::metadata(lab.path("report.html")).unwrap().len();
    assert!(size < 20_000_000 && lab.path("report.data").is_dir(), "{size} bytes");
    block_on(async {
        let browser = Browser::start().await;
        browser.look(1280, 900, false).await;
        let mut paints = Vec::new();
        for _ in 0..3 {
            browser.open("about:blank").await;
            browser.open(&address).await;
            let paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
            browser.until(paint).await;
            paints.push(browser.eval(paint).await.as_f64().unwrap());
        }
        let best = paints.iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            "{} attempts, a page of {:.1} MB: first paint after {paints:.0?} ms",
            lines.lines().count(),
            size as f64 / 1e6
        );
        assert!(best < 1000.0, "{paints:?}");
        browser.go("#/sample/tiny_3/0.0").await;
        browser.until("document.querySelectorAll('.conversation .event').length > 5").await;
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

/// Returns a name that contains markup, reverses the text after it, and is far too long.
fn hostile() -> String {
    format!("</script><img src=x onerror=window.hit=1>\u{202e}gpj.\u{200b}{}", "long".repeat(100))
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn hostile_names_are_harmless_in_every_table() {
    let lab = lab();
    board(&lab, "board", &hostile(), 24);
    let label = format!("small-model={}", hostile().replace('=', ""));
    let address = page(&lab, &["board", "--label", &label]);
    block_on(async {
        let browser = Browser::start().await;
        for width in [1280, 390] {
            browser.look(width, 900, false).await;
            browser.open(&address).await;
            for hash in ["#/", "#/samples", "#/compare", "#/sample/tiny_0"] {
                browser.go(hash).await;
                let text = browser.text().await;
                assert!(!text.contains(['\u{202e}', '\u{200b}']), "{hash}");
                assert!(text.contains("\\u{202e}gpj.\\u{200b}"), "{hash}");
                assert_eq!(browser.eval("document.querySelectorAll('img, #page script').length").await, json!(0));
                let wide = browser.eval("document.documentElement.scrollWidth - innerWidth").await;
                assert!(wide.as_f64().unwrap() <= 0.0, "{hash} at {width}: {wide} too wide");
            }
            assert_eq!(browser.eval("window.hit").await, Value::Null);
            assert_eq!(browser.complaints().await, [""; 0]);
        }
    });
}

/// Words of headings, names and ids that are spread over two lines.
const BROKEN_WORDS: &str = "[...document.querySelectorAll('main:not([hidden]) :is(h1, h2, h3, th, td:first-child, td a)')].filter((one) => one.offsetParent).flatMap((one) => { const broken = []; const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT); while (walker.nextNode()) for (const word of walker.currentNode.data.matchAll(/[\\p{L}\\p{N}]+/gu)) { const range = document.createRange(); range.setStart(walker.currentNode, word.index); range.setEnd(walker.currentNode, word.index + word[0].length); if (new Set([...range.getClientRects()].map((it) => Math.round(it.top))).size > 1) broken.push(word[0]); } return broken; })";

#[test]
#[ignore = "needs chromium and chromedriver"]
fn the_page_breaks_no_words_shows_a_chart_without_scrolling_and_marks_cut_tables() {
    let lab = lab();
    board(&lab, "calibration-of-models", "react+tools=super", 24);
    let address = page(&lab, &["calibration-of-models", "r"]);
    block_on(async {
        let browser = Browser::start().await;
        for (width, height) in [(1280, 800), (390, 844)] {
            browser.look(width, height, false).await;
            browser.open(&address).await;
            for hash in ["#/", "#/samples", "#/compare"] {
                browser.go(hash).await;
                browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true").await;
                assert_eq!(browser.eval(BROKEN_WORDS).await, json!([]), "{hash} at {width}");
            }
            browser.open(&address).await;
            browser.go("#/").await;
            // If a table or picture does not fit, a line says that it can be scrolled sideways.
            let silent = "[...document.querySelectorAll('#overview :is(.scroll, .chart)')].filter((one) => one.offsetParent && one.scrollWidth > one.clientWidth + 1 && !(one.nextElementSibling.className === 'sideways' && one.nextElementSibling.offsetHeight > 0)).length";
            if width == 390 {
                assert_eq!(browser.eval(silent).await, json!(0));
                let cut = "document.querySelectorAll('#overview .scroll.cut').length";
                assert!(browser.eval(cut).await.as_f64().unwrap() > 0.0);
            } else {
                let bottom = "document.querySelector('.first svg').getBoundingClientRect().bottom";
                let bottom = browser.eval(bottom).await.as_f64().unwrap();
                assert!(bottom <= f64::from(height), "the first chart ends at {bottom}");
            }
            let shown = "[...document.querySelectorAll('.toc a')].every((one) => document.getElementById(one.getAttribute('href').slice(1)))";
            assert_eq!(browser.eval(shown).await, json!(true));
            browser.run("document.querySelector('.toc a[href=\"#ends\"]').click()").await;
            browser.until("Math.abs(document.querySelector('#ends').getBoundingClientRect().top) < 200").await;
        }
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn the_list_of_samples_can_be_filtered_by_n_agent_and_end_and_sorted_by_column() {
    let lab = lab();
    board(&lab, "board", "react", 24);
    let lines = lab.read("runs/board/attempts.jsonl");
    let changed = lines.lines().enumerate().map(|(number, line)| {
        let mut one: Value = serde_json::from_str(line).unwrap();
        if one["agent"] == "fixed" && number % 5 == 0 {
            one["end"] = "step_limit".into();
            one["pass"] = false.into();
        }
        one
    });
    let changed: Vec<Value> = changed.collect();
    lab.write("runs/board/attempts.jsonl", &crate::support::json_lines(&changed));
    let wanted = changed.iter().filter(|one| one["agent"] == "fixed" && one["end"] == "step_limit" && one["n"] == 2);
    let wanted = wanted.filter(|one| one["model"] == "large-model").map(|one| one["sample"].to_string());
    let wanted: std::collections::BTreeSet<String> = wanted.collect();
    let address = page(&lab, &["board"]);
    block_on(async {
        let browser = Browser::start().await;
        browser.look(1280, 900, false).await;
        browser.open(&address).await;
        browser.go("#/samples").await;
        let rows = "[...document.querySelectorAll('#page tbody tr')].map((row) => row.cells[0].querySelector('a').textContent)";
        assert_eq!(browser.eval(rows).await.as_array().unwrap().len(), 24);
        for (label, value) in
            [("Which n", "2"), ("How attempts ended", "step_limit"), ("Which agent", "fixed large-model")]
        {
            let choose = format!(
                "(() => {{ const one = document.querySelector('select[aria-label=\"{label}\"]'); one.value = '{value}'; one.dispatchEvent(new Event('change')); }})()"
            );
            browser.run(&choose).await;
        }
        let found = browser.eval(rows).await;
        let found: std::collections::BTreeSet<String> =
            found.as_array().unwrap().iter().map(Value::to_string).collect();
        assert!(!wanted.is_empty() && found == wanted, "{found:?}, wanted {wanted:?}");
        assert_eq!(browser.eval("document.querySelectorAll('#page thead th').length").await, json!(3));
        // The address holds the filters.
        let hash = browser.eval("location.hash").await;
        browser.open("about:blank").await;
        browser.open(&format!("{address}{}", hash.as_str().unwrap())).await;
        browser.until("document.querySelector('#page tbody tr')").await;
        assert_eq!(browser.eval(rows).await.as_array().unwrap().len(), wanted.len());
        browser.go("#/samples").await;
        browser.until("document.querySelectorAll('#page tbody tr').length === 24").await;
        for column in 0..3 {
            let click = format!("document.querySelectorAll('#page thead th button')[{column}].click()");
            browser.run(&click).await;
            let way = format!("document.querySelectorAll('#page thead th')[{column}].getAttribute('aria-sort')");
            assert_eq!(browser.eval(&way).await, json!("ascending"));
        }
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}
