//! The report in a real browser: every view opens, search and folded sections work, and text from agents, models and
//! files never runs as code.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::support::Lab;
use crate::support::browser::Browser;
use serde_json::{Value, json};

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

/// Makes a lab with two runs: `r` by gold, noop and an agent that makes mistakes, `q` by gold alone.
pub fn lab() -> Lab {
    crate::support::prepared::runs("view", make_runs)
}

fn make_runs(lab: &Lab) {
    let steps = [
        json!({"tool": "command_line", "arguments": {"command": "echo looking for a needle; ls"}}),
        json!({"tool": "command_line", "arguments": {"command": "python -m tiny means --power 1"}}),
        json!({"tool": "command_line", "arguments": {"command": "sed -i 's/raise NotImplementedError/return 1.0  # guessed/' tiny/*.py"}}),
        json!({"tool": "final_answer", "arguments": {"answer": {"Experiment 1": {"arithmetic": 4.2, "geometric": 3.7}}}}),
    ];
    lab.write("stumble", &crate::support::json_lines(&steps));
    let agent = format!("scripted:{}", lab.path("stumble").display());
    lab.ok(&["run", "-n", "0..2", "-k", "2", "--agent", "gold", "--agent", "noop", "--agent", &agent, "--name", "r"]);
    lab.ok(&["run", "-n", "1..2", "--agent", "gold", "--name", "q"]);
}

pub fn page(lab: &Lab, runs: &[&str]) -> String {
    let mut arguments = vec!["report"];
    arguments.extend(runs);
    arguments.extend(["--html", "report.html"]);
    lab.ok(&arguments);
    format!("file://{}", lab.path("report.html").display())
}

/// A process of `autoexperiment view`, killed when dropped.
pub struct Viewer {
    child: Child,
    pub address: String,
}

impl Viewer {
    pub fn start(lab: &Lab, runs: &[&str]) -> Self {
        let mut arguments = vec!["view"];
        arguments.extend(runs);
        let mut child = lab.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path for a screenshot to be looked at by people.
pub fn picture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

pub const VIEWS: [(&str, &str, &str); 5] = [
    ("overview", "#/", "!document.querySelector('#overview').hidden"),
    ("samples", "#/samples", "document.querySelector('#page h1')?.textContent === 'Samples'"),
    ("sample", "#/sample/tiny_0,1/2.0", "document.querySelector('#page .conversation')"),
    ("compare", "#/compare/0/2/tiny_0,1", "document.querySelectorAll('.sides .conversation').length === 2"),
    ("nothing", "#/sample/none_0", "document.querySelector('#page .missing')"),
];

async fn open_every_view(browser: &Browser, address: &str, name: &str) {
    for (width, height) in [(1280, 900), (390, 844)] {
        for dark in [false, true] {
            browser.look(width, height, dark).await;
            browser.open(address).await;
            for (view, hash, there) in VIEWS {
                browser.go(hash).await;
                browser.until(there).await;
                // Wide tables and pictures scroll in their own boxes; the page itself never scrolls sideways.
                let wide = browser.eval("document.documentElement.scrollWidth - innerWidth").await;
                assert!(wide.as_f64().unwrap() <= 0.0, "{name} {view} at {width}: {wide} too wide");
                let shot = json!({ "format": "png", "captureBeyondViewport": view == "overview" || view == "sample" });
                let taken = browser.devtools("Page.captureScreenshot", shot).await;
                let bytes =
                    base64::Engine::decode(&base64::engine::general_purpose::STANDARD, taken["data"].as_str().unwrap());
                let shade = if dark { "dark" } else { "light" };
                fs::write(picture(&format!("{name}-{view}-{width}-{shade}.png")), bytes.unwrap()).unwrap();
            }
            assert_eq!(browser.complaints().await, [""; 0], "{name} at {width}");
        }
    }
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn every_view_opens_without_a_message_in_the_browser_console() {
    let lab = lab();
    let address = page(&lab, &["r"]);
    let viewer = Viewer::start(&lab, &["r"]);
    block_on(async {
        let browser = Browser::start().await;
        open_every_view(&browser, &address, "file").await;
        open_every_view(&browser, &viewer.address, "view").await;
    });
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn searching_folding_jumping_and_copying_work() {
    let lab = lab();
    let address = page(&lab, &["r"]);
    block_on(async {
        let browser = Browser::start().await;
        browser.look(1280, 900, false).await;
        browser.open(&address).await;
        // The table of results can be copied in three formats.
        for (format, part) in
            [("CSV", "agent,n,pass@1"), ("Markdown", "| agent | n | pass@1"), ("LaTeX", "\\begin{tabular}{")]
        {
            let click = format!(
                "[...document.querySelectorAll('#results button')].find((one) => one.textContent === '{format}').click()"
            );
            browser.run(&click).await;
            browser
                .until(&format!("document.querySelector('#results table').dataset.copied?.includes({part:?})"))
                .await;
        }
        // Filter the samples by name.
        browser.go("#/samples").await;
        browser.until("document.querySelector('#page input')").await;
        let type_in = |what: &str| {
            format!(
                "const it = document.querySelector('#page input'); it.value = {what:?}; it.dispatchEvent(new Event('input'))"
            )
        };
        browser.run(&type_in("tiny_0,")).await;
        browser
            .until(
                "[...document.querySelectorAll('#page tbody tr')].every((row) => row.textContent.includes('tiny_0,'))",
            )
            .await;
        // Open the trajectory of the agent that makes mistakes.
        browser.go("#/sample/tiny_0/2.0").await;
        browser.until("document.querySelector('.conversation .event')").await;
        let events = browser.eval("document.querySelectorAll('.trajectory .event').length").await;
        assert!(events.as_u64().unwrap() > 5, "{events}");
        browser.run("document.querySelector('.first-error').click()").await;
        browser.until("document.querySelector('.event.here.error details[open]')").await;
        assert!(
            browser
                .eval("document.querySelector('.event.here').innerText")
                .await
                .as_str()
                .unwrap()
                .contains("NotImplementedError")
        );
        browser.run(&type_in("NEEDLE")).await;
        browser.until("document.querySelectorAll('.trajectory mark').length > 0").await;
        browser.until("document.querySelectorAll('.trajectory .event[hidden]').length > 0").await;
        browser.run(&type_in("")).await;
        browser.until("document.querySelectorAll('.trajectory .event[hidden]').length === 0").await;
        for (button, open) in [("Unfold all", true), ("Fold all", false)] {
            let click = format!(
                "[...document.querySelectorAll('.conversation button')].find((one) => one.textContent === '{button}').click()"
            );
            browser.run(&click).await;
            browser
                .until(&format!(
                    "[...document.querySelectorAll('.trajectory details')].every((one) => one.open === {open})"
                ))
                .await;
        }
        // The agent's code in place of the masked function, compared with the original.
        browser.until("document.querySelector('.attempt .code .add')?.textContent.includes('guessed')").await;
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

/// Text that becomes a script wherever it is taken for markup, for JavaScript or for the end of an element.
const PLANTED: &str = "</script><script>window.hit=1</script><img src=x onerror=window.hit=2>\"'><svg onload=window.hit=3>{{7*7}}`${window.hit=4}`\u{2028}javascript:window.hit=5";

/// Appends the planted text to every text of a value, except in the fields `keep`.
fn plant(value: &mut Value, keep: &[&str]) {
    match value {
        Value::String(text) => *text = format!("{text} {PLANTED}"),
        Value::Array(items) => items.iter_mut().for_each(|item| plant(item, keep)),
        Value::Object(map) => {
            for (_, value) in map.iter_mut().filter(|(key, _)| !keep.contains(&key.as_str())) {
                plant(value, keep);
            }
        }
        _ => {}
    }
}

fn plant_lines(path: &Path, keep: &[&str]) {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| {
        let mut value = serde_json::from_str(line).unwrap();
        plant(&mut value, keep);
        value.to_string() + "\n"
    });
    fs::write(path, lines.collect::<String>()).unwrap();
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn a_script_planted_in_any_field_does_not_run_and_is_shown() {
    let lab = lab();
    // Do not append to names that lead to other files, or to words from a fixed set.
    let names = ["sample", "paper", "agent", "started", "end", "event", "role", "exit", "created", "results"];
    for entry in walkdir::WalkDir::new(lab.path("runs/r")).into_iter().flatten() {
        let path = entry.path();
        match path.extension().and_then(|it| it.to_str()) {
            Some("jsonl") => plant_lines(path, &names),
            Some("patch") => fs::write(path, format!("{}+{PLANTED}\n", fs::read_to_string(path).unwrap())).unwrap(),
            _ => {}
        }
    }
    let mut run: Value = serde_json::from_str(&lab.read("runs/r/run.json")).unwrap();
    run["command_line"] = json!([PLANTED]);
    run["configuration"]["agents"] = json!([format!("scripted:{PLANTED}")]);
    plant(&mut run["sessions"][0]["sandbox"], &[]);
    run["run"] = PLANTED.into();
    lab.write("runs/r/run.json", &run.to_string());
    lab.write("papers/tiny/paper.md", &format!("{}\n{PLANTED}\n", lab.read("papers/tiny/paper.md")));
    let title = lab.read("papers/tiny/paper.toml").lines().find(|line| line.starts_with("title")).unwrap().to_owned();
    lab.edit("papers/tiny/paper.toml", &title, &format!("title = '''{PLANTED}'''"));
    let url = lab.read("papers/tiny/paper.toml").lines().find(|line| line.starts_with("url")).unwrap().to_owned();
    lab.edit("papers/tiny/paper.toml", &url, "url = 'javascript:window.hit=6'");
    let address = page(&lab, &["r", "q"]);
    let viewer = Viewer::start(&lab, &["r", "q"]);
    block_on(async {
        let browser = Browser::start().await;
        browser.look(1280, 900, false).await;
        for address in [address, viewer.address.clone()] {
            browser.open(&address).await;
            let contenders =
                browser.eval("JSON.parse(document.getElementById('index').textContent).contenders.length").await;
            let shown = |text: &str| text.contains("<script>window.hit=1</script>");
            assert!(shown(&browser.text().await));
            for contender in 0..contenders.as_u64().unwrap() {
                for sample in ["tiny_", "tiny_0", "tiny_0,1"] {
                    browser.go(&format!("#/sample/{sample}/{contender}.0")).await;
                    browser.until("document.querySelector('#page .conversation')").await;
                    browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true").await;
                    browser
                        .until("document.querySelector('.conversation') && document.querySelector('#page pre.text')")
                        .await;
                    assert!(shown(&browser.text().await), "{sample} {contender}");
                    let bad = "document.querySelectorAll('#page script, #page img, #page svg, #overview img, #overview script, a[href^=\"javascript\"], [onerror], [onload]').length";
                    assert_eq!(browser.eval(bad).await, json!(0));
                }
            }
            browser.go("#/compare/0/1/tiny_0").await;
            browser.until("document.querySelector('.sides')").await;
            browser.go("#/samples").await;
            browser.until("document.querySelector('#page h1')?.textContent === 'Samples'").await;
            assert_eq!(browser.eval("window.hit").await, Value::Null);
            assert_eq!(browser.complaints().await, [""; 0]);
        }
    });
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn samples_decided_differently_by_two_runs_are_shown_with_both_trajectories() {
    let lab = lab();
    let address = page(&lab, &["r", "q"]);
    let viewer = Viewer::start(&lab, &["r", "q"]);
    let samples = lab.records("q").len();
    block_on(async {
        let browser = Browser::start().await;
        browser.look(1280, 900, false).await;
        for address in [&address, &viewer.address] {
            browser.open(address).await;
            // An agent of one run is compared with the same agent of the other.
            browser.go("#/compare").await;
            let chosen =
                "[...document.querySelectorAll('#page select')].map((one) => one.selectedOptions[0].textContent)";
            assert_eq!(browser.eval(chosen).await, json!(["q/gold", "r/gold"]));
            let said = format!("Of {samples} samples that both attempted, 0 flipped");
            assert!(browser.text().await.contains(&said), "{}", browser.text().await);
            let other = "const it = document.querySelectorAll('#page select')[1]; it.value = [...it.options].find((one) => one.textContent === 'r/noop').value; it.dispatchEvent(new Event('change'))";
            browser.run(other).await;
            browser
                .until(&format!(
                    "document.body.innerText.includes('{samples} flipped: {samples} only the first passes, 0')"
                ))
                .await;
            assert!(browser.text().await.contains("Samples that only one of the two has: 1."));
            assert_eq!(
                browser.eval("document.querySelectorAll('.flipped[open] tbody tr').length").await,
                json!(samples)
            );
            browser.run("document.querySelector('.flipped tbody a').click()").await;
            browser.until("document.querySelectorAll('.sides .conversation .event').length > 2").await;
            let sides = "[...document.querySelectorAll('.sides > div')].map((one) => [one.querySelector('h3').textContent, one.querySelector('.badge').classList.contains('pass'), one.querySelectorAll('.trajectory .event').length > 0])";
            assert_eq!(browser.eval(sides).await, json!([["q/gold", true, true], ["r/noop", false, true]]));
            // Choose the other attempt of the same agent, then go to the next flipped sample.
            let again = "const it = document.querySelectorAll('.sides select')[1]; it.value = '1'; it.dispatchEvent(new Event('change'))";
            browser.run(again).await;
            browser.until("document.querySelectorAll('.sides .conversation .event').length > 2").await;
            let shown = browser.eval("document.querySelector('#page h2').textContent").await;
            browser.run("document.querySelector('.steps a').click()").await;
            browser.until(&format!("document.querySelector('#page h2').textContent !== {shown}")).await;
            browser
                .until(&format!("document.querySelector('.steps').textContent.startsWith('Flipped, 2 of {samples}.')"))
                .await;
            assert_eq!(browser.complaints().await, [""; 0]);
        }
    });
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn the_page_of_an_unfinished_run_updates_itself_when_attempts_are_added() {
    let lab = lab();
    let all = lab.read("runs/q/attempts.jsonl");
    let (first, _) = all.split_once('\n').unwrap();
    lab.write("runs/q/attempts.jsonl", &format!("{first}\n"));
    let viewer = Viewer::start(&lab, &["q"]);
    block_on(async {
        let browser = Browser::start().await;
        browser.look(1280, 900, false).await;
        browser.open(&viewer.address).await;
        let count = all.lines().count();
        browser
            .until(&format!("document.querySelector('.progress').textContent.includes('1 of {count} attempts')"))
            .await;
        browser.go("#/samples").await;
        browser.until("document.querySelectorAll('#page .marks .begun').length > 0").await;
        browser
            .run("const it = document.querySelector('#page input'); it.value = 'tiny_0,'; it.dispatchEvent(new Event('input'))")
            .await;
        lab.write("runs/q/attempts.jsonl", &all);
        browser.until("document.querySelectorAll('#page .marks .begun').length === 0").await;
        // The text that was typed into the page's input stays when the page is updated.
        assert_eq!(browser.eval("document.querySelector('#page input').value").await, json!("tiny_0,"));
        browser
            .until(&format!("document.querySelector('.progress').textContent.includes('{count} of {count} attempts')"))
            .await;
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn the_page_of_a_running_attempt_adds_new_steps_and_keeps_opened_details_open() {
    let lab = lab();
    let all = lab.read("runs/r/attempts.jsonl");
    let is_it = |line: &&str| {
        let record: Value = serde_json::from_str(line).unwrap();
        record["agent"].as_str().unwrap().starts_with("scripted")
            && (&record["sample"], &record["attempt"]) == (&json!("tiny_0"), &json!(0))
    };
    let others: String = all.split_inclusive('\n').filter(|line| !is_it(line)).collect();
    lab.write("runs/r/attempts.jsonl", &others);
    let trajectory = walkdir::WalkDir::new(lab.path("runs/r/trajectories"))
        .into_iter()
        .flatten()
        .find(|entry| entry.file_name() == "tiny_0.0.jsonl" && entry.path().to_string_lossy().contains("scripted"));
    let trajectory = trajectory.unwrap().into_path();
    let whole = fs::read_to_string(&trajectory).unwrap();
    let lines = whole.lines().count();
    let beginning: String = whole.split_inclusive('\n').take(5).collect();
    fs::write(&trajectory, &beginning).unwrap();
    let viewer = Viewer::start(&lab, &["r"]);
    block_on(async {
        let browser = Browser::start().await;
        browser.look(1280, 900, false).await;
        browser.open(&viewer.address).await;
        browser.go("#/sample/tiny_0/2.0").await;
        browser.until("document.querySelectorAll('.trajectory .event').length === 5").await;
        assert_eq!(browser.eval("document.querySelector('#page .attempt').dataset.state").await, json!("begun"));
        let open = "[...document.querySelectorAll('.trajectory details')].map((one) => one.open)";
        browser.run("document.querySelectorAll('.trajectory details')[1].open = true").await;
        fs::write(&trajectory, &whole).unwrap();
        browser.until(&format!("document.querySelectorAll('.trajectory .event').length === {lines}")).await;
        let is_open = browser.eval(open).await;
        assert_eq!((&is_open[0], &is_open[1]), (&json!(false), &json!(true)), "{is_open}");
        lab.write("runs/r/attempts.jsonl", &all);
        browser.until("document.querySelector('#page .attempt').dataset.state === 'fail'").await;
        assert_eq!(browser.eval(open).await, is_open);
        browser.until("document.querySelector('.attempts [aria-pressed=true] .fail')").await;
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn the_viewer_shows_a_linked_sample_although_new_attempts_changed_its_position() {
    let lab = lab();
    // At first the run only has attempts at its last sample. Later, attempts at the other samples are added before
    // them.
    let all = lab.read("runs/q/attempts.jsonl");
    let later: String = all.split_inclusive('\n').filter(|line| line.contains("\"tiny_0,1\"")).collect();
    lab.write("runs/q/attempts.jsonl", &later);
    fs::rename(lab.path("runs/q/trajectories"), lab.path("later")).unwrap();
    let viewer = Viewer::start(&lab, &["q"]);
    block_on(async {
        let browser = Browser::start().await;
        browser.look(1280, 900, false).await;
        browser.open(&viewer.address).await;
        browser.until("document.querySelector('#live').textContent.includes('1 of')").await;
        // From now on, the page gets no updates by itself.
        browser
            .run("const before = window.fetch; window.fetch = (what) => what === 'state' ? new Promise(() => {}) : before(what)")
            .await;
        lab.write("runs/q/attempts.jsonl", &all);
        fs::rename(lab.path("later"), lab.path("runs/q/trajectories")).unwrap();
        browser.go("#/sample/tiny_0,1").await;
        browser.until("document.querySelectorAll('.conversation .event').length > 2").await;
        let masked = "[...document.querySelectorAll('#page > div > details > summary')].filter((one) => one.textContent.includes('as masked')).length";
        assert_eq!(browser.eval(masked).await, json!(2));
        browser.go("#/samples").await;
        let count = all.lines().count();
        browser.until(&format!("document.querySelectorAll('#page tbody tr').length === {count}")).await;
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn a_page_address_without_attempt_keeps_showing_the_same_agent_when_attempts_are_added() {
    let lab = lab();
    // At first there are no attempts of the first agent.
    let all = lab.read("runs/r/attempts.jsonl");
    let later: String = all.split_inclusive('\n').filter(|line| !line.contains("\"agent\":\"gold\"")).collect();
    assert!(later.len() < all.len());
    lab.write("runs/r/attempts.jsonl", &later);
    fs::rename(lab.path("runs/r/trajectories/gold"), lab.path("later")).unwrap();
    let viewer = Viewer::start(&lab, &["r"]);
    block_on(async {
        let browser = Browser::start().await;
        browser.look(1280, 900, false).await;
        browser.open(&viewer.address).await;
        browser.go("#/sample/tiny_0").await;
        browser.until("document.querySelector('#page .attempt')?.dataset.key === '0.0'").await;
        let shown =
            "document.querySelector('.attempts [aria-pressed=true]').parentElement.querySelector('span').textContent";
        assert_eq!(browser.eval(shown).await, json!("noop"));
        fs::rename(lab.path("later"), lab.path("runs/r/trajectories/gold")).unwrap();
        lab.write("runs/r/attempts.jsonl", &all);
        browser.until("document.querySelectorAll('.attempts .tools').length === 3").await;
        assert_eq!(browser.eval(shown).await, json!("noop"));
        assert_eq!(browser.eval("document.querySelector('#page .attempt').dataset.key").await, json!("1.0"));
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

#[test]
fn only_clients_on_this_machine_that_know_the_secret_address_are_answered() {
    let lab = lab();
    let viewer = Viewer::start(&lab, &["q"]);
    let (host, path) = viewer.address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert!(host.starts_with("127.0.0.1:"));
    let ask = |method: &str, path: &str, host_said: &str| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        write!(stream, "{method} /{path} HTTP/1.1\r\nHost: {host_said}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let code = |answer: &str| answer.split(' ').nth(1).unwrap().to_owned();
    let whole = ask("GET", path, host);
    assert_eq!(code(&whole), "200");
    assert!(
        whole.to_lowercase().contains("content-security-policy: default-src 'none'; script-src 'sha256-"),
        "{whole:.600}"
    );
    // Without its last slash, the address still leads to the page.
    let without = ask("GET", path.trim_end_matches('/'), host);
    assert!(code(&without) == "307" && without.contains(&format!("/{path}\r\n")), "{without}");
    assert_eq!(code(&ask("GET", "", host)), "404");
    assert_eq!(code(&ask("GET", "0123/state", host)), "404");
    assert_eq!(code(&ask("GET", path, "evil.example")), "403");
    assert_eq!(code(&ask("POST", &format!("{path}state"), host)), "405");
    for strange in ["details/s99", "details/..%2f..%2frun.json", "details/", "details/%C3%A4"] {
        assert_eq!(code(&ask("GET", &format!("{path}{strange}"), host)), "404", "{strange}");
    }
    assert_eq!(code(&ask("GET", &format!("{path}details/s0"), host)), "200");
}

#[test]
fn a_broken_store_gives_a_page_that_lists_missing_parts() {
    let lab = lab();
    let expect = |parts: &[&str]| {
        lab.ok(&["report", "r", "--html", "report.html"]);
        // Names in backticks are code on the page.
        let html = lab.read("report.html").replace("<code>", "`").replace("</code>", "`");
        for part in parts {
            assert!(html.contains(part), "{part}");
        }
    };
    let all = lab.read("runs/r/attempts.jsonl");
    let lines: Vec<&str> = all.lines().collect();
    // Cut the file off at several places: between lines, in a line, before the first line.
    for cut in [0, 1, lines[0].len() / 2, lines[0].len() + 1, all.len() / 2, all.len() - 1] {
        let end = (cut..=all.len()).find(|&at| all.is_char_boundary(at)).unwrap();
        lab.write("runs/r/attempts.jsonl", &all[..end]);
        expect(&[" stored, "]);
    }
    lab.write("runs/r/attempts.jsonl", "");
    expect(&["no attempt has been stored yet", "0 of "]);
    lab.write("runs/r/attempts.jsonl", &format!("{}\n", lines[0]));
    expect(&["1 of "]);
    lab.write("runs/r/attempts.jsonl", &format!("{}\n\u{1}garbage\n{}\n", lines[0], lines[1]));
    expect(&["line 2 of `attempts.jsonl` is broken"]);
    lab.write("runs/r/attempts.jsonl", &all);
    // Remove the paper and the trajectories.
    fs::rename(lab.path("papers/tiny"), lab.path("papers/gone")).unwrap();
    fs::remove_dir_all(lab.path("runs/r/trajectories")).unwrap();
    fs::remove_dir_all(lab.path("runs/r/diffs")).unwrap();
    expect(&["`tiny` cannot be read"]);
    fs::rename(lab.path("papers/gone"), lab.path("papers/tiny")).unwrap();
    // Try a `run.json` of a newer version, a garbled one, and no such file.
    let run = lab.read("runs/r/run.json");
    lab.write("runs/r/run.json", &run.replacen("\"format\": 1", "\"format\": 2", 1));
    let newer = lab.run(&["report", "r", "--html", "report.html"]);
    assert!(newer.code == 7 && newer.stderr.contains("the run is of format 2"), "{}", newer.stderr);
    lab.write("runs/r/run.json", "{");
    expect(&["broken run file"]);
    fs::remove_file(lab.path("runs/r/run.json")).unwrap();
    expect(&["is not a run"]);
    assert_eq!(lab.run(&["report", "nowhere", "--html", "report.html"]).code, 2);
}

#[test]
fn a_paper_that_differs_between_the_suites_of_two_runs_is_not_said_to_have_changed() {
    let (one, other) = (Lab::new(), Lab::new());
    other.edit("papers/tiny/paper.toml", "description = \"The arithmetic mean.\"", "description = \"A mean.\"");
    let run = ["run", "-n", "1", "--limit", "1", "--agent", "noop", "--no-baseline", "--no-verify", "--name"];
    for (lab, name) in [(&one, "a"), (&other, "b")] {
        lab.ok(&[&run[..], &[name]].concat());
    }
    let second = other.path("runs/b").display().to_string();
    one.ok(&["report", "a", &second, "--html", "report.html"]);
    let html = one.read("report.html");
    assert!(html.contains("differs between the suites of the runs") && !html.contains("has changed since the run"));
}

#[test]
fn the_html_report_has_columns_for_pass_at_1_and_for_the_requested_k() {
    let lab = lab();
    let headings = |more: &[&str]| {
        lab.ok(&[&["report", "r", "--html", "report.html"], more].concat());
        let html = lab.read("report.html");
        let results = html.split_once("id=\"results\"").unwrap().1.split_once("</thead>").unwrap().0.to_owned();
        let headings = results.split("<th scope=\"col\">").skip(1).map(|cell| cell.split_once('<').unwrap().0);
        headings.filter(|name| name.starts_with("pass")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(headings(&["-k", "2"]), ["pass@1 %", "pass@2 %", "pass^2 %"]);
    assert_eq!(headings(&[]), ["pass@1 %", "pass@2 %", "pass^2 %"]);
    assert_eq!(headings(&["-k", "1"]), ["pass@1 %"]);
}

#[test]
fn figures_are_written_for_print() {
    let lab = lab();
    // A figure of an earlier report that this report does not draw, and a file of the user's own.
    for old in ["cost-accuracy.svg", "mine.svg"] {
        lab.write(&format!("figures/{old}"), "old");
    }
    let drawn = lab.ok(&["report", "r", "--figures", "figures"]).stderr;
    assert!(drawn.contains("not drawn: "), "{drawn}");
    assert!(!lab.path("figures/cost-accuracy.svg").exists() && lab.path("figures/mine.svg").exists());
    for name in ["pass-by-n", "pass-at-k"] {
        let read = |extension: &str| fs::read(lab.path(&format!("figures/{name}.{extension}"))).unwrap();
        assert!(String::from_utf8(read("svg")).unwrap().contains("width=\"5.500in\""));
        assert!(read("pdf").starts_with(b"%PDF-"));
        let png = read("png");
        assert_eq!(&png[1..4], b"PNG");
        // 5.5 inches at 300 dots per inch.
        assert_eq!(u32::from_be_bytes(png[16..20].try_into().unwrap()), 1650);
        assert!(String::from_utf8(read("csv")).unwrap().starts_with("agent,model,"));
    }
}

#[test]
fn the_option_label_renames_agents_and_runs_in_tables_of_attempts_and_values() {
    let lab = lab();
    for table in ["attempts", "values"] {
        let told = lab.ok(&["report", table, "r", "q", "--label", "q/gold=Best", "--label", "r=First"]).stdout;
        assert!(told.contains("\nq,Best,") && told.contains("\nr,First/noop,"), "{told}");
        assert!(!told.contains("q/gold") && !told.contains("r/noop"), "{told}");
        let unknown = lab.fails(2, &["report", table, "r", "q", "--label", "nobody=x"]);
        assert!(unknown.contains("`nobody`"), "{unknown}");
    }
}

#[test]
#[ignore = "needs chromium and chromedriver"]
fn the_chart_of_pass_rates_by_n_is_drawn() {
    let lab = Lab::new();
    let agents = ["--agent", "gold", "--agent", "mutant:0.3", "--agent", "mutant:0.7"];
    let mut run = vec!["run", "-n", "0..3", "-k", "4", "--name", "baselines"];
    run.extend(agents);
    lab.ok(&run);
    let address = page(&lab, &["baselines"]);
    block_on(async {
        let browser = Browser::start().await;
        browser.look(1040, 700, false).await;
        browser.open(&format!("{address}#pass-by-n")).await;
        browser.until("document.querySelectorAll('#pass-by-n svg').length === 1").await;
        browser.run("document.querySelector('#pass-by-n').scrollIntoView()").await;
        let shot = browser.client.screenshot().await.unwrap();
        fs::write(picture("pass-by-n.png"), &shot).unwrap();
        assert!(shot.len() > 20_000, "{} bytes show nothing", shot.len());
    });
}
