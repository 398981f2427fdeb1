//! A real Chromium without a window, controlled over WebDriver.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

/// A browser with a profile of its own; closed when dropped.
pub struct Browser {
    driver: Child,
    pub client: Client,
    _profile: tempfile::TempDir,
}

/// A command that only Chromium's driver has.
#[derive(Debug)]
struct Own {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Own {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}

/// Starts the driver, which chooses a free port. Returns `None` if the driver exits without having found one.
fn start_driver(home: &std::path::Path) -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .env("HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("`chromedriver` starts");
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = lines.find_map(|line| {
        let line = line.unwrap();
        let (_, port) = line.split_once("successfully on port ")?;
        Some(port.trim_end_matches('.').parse().unwrap())
    });
    let Some(port) = port else {
        driver.wait().unwrap();
        return None;
    };
    // Read the driver's output, so that the driver never blocks.
    std::thread::spawn(move || lines.for_each(drop));
    Some((driver, port))
}

impl Browser {
    pub async fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        // On a busy machine, a driver may exit without having found a port; start another one.
        let (driver, port) = (0..3).find_map(|_| start_driver(profile.path())).unwrap();
        let mut arguments = vec![
            "--headless=new".to_owned(),
            "--disable-gpu".into(),
            "--disable-dev-shm-usage".into(),
            "--no-first-run".into(),
            "--hide-scrollbars".into(),
            format!("--user-data-dir={}", profile.path().join("chromium").display()),
        ];
        if nix::unistd::geteuid().is_root() {
            arguments.push("--no-sandbox".into());
        }
        let capabilities = json!({
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities.as_object().unwrap().clone())
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        Self { driver, client, _profile: profile }
    }

    /// Sets the window's size, and whether a dark colour scheme is preferred.
    pub async fn look(&self, width: u32, height: u32, dark: bool) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", media).await;
    }

    pub async fn devtools(&self, method: &str, parameters: Value) -> Value {
        let body = json!({ "cmd": method, "params": parameters });
        self.client.issue_cmd(Own { path: "goog/cdp/execute", body }).await.unwrap()
    }

    pub async fn open(&self, address: &str) {
        self.client.goto(address).await.unwrap();
    }

    /// Goes to another view of the current page.
    pub async fn go(&self, hash: &str) {
        self.run(&format!("location.hash = {hash:?}")).await;
        // The old view stays until the new one is complete.
        self.until("document.body.dataset.shown === location.hash").await;
    }

    /// Returns the value of a JavaScript expression.
    pub async fn eval(&self, expression: &str) -> Value {
        self.client.execute(&format!("return ({expression})"), vec![]).await.unwrap()
    }

    pub async fn run(&self, script: &str) {
        self.client.execute(script, vec![]).await.unwrap();
    }

    pub async fn text(&self) -> String {
        self.eval("document.body.innerText").await.as_str().unwrap().to_owned()
    }

    /// Waits until an expression is true.
    pub async fn until(&self, expression: &str) {
        let begun = Instant::now();
        while self.eval(&format!("Boolean({expression})")).await != json!(true) {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "never true: {expression}\n{:?}\n{}",
                self.complaints().await,
                self.text().await
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns the warnings and errors on the console since the last call.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.client.issue_cmd(Own { path: "se/log", body: json!({ "type": "browser" }) }).await.unwrap();
        let entries = log.as_array().unwrap().iter();
        let bad = entries.filter(|entry| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING")));
        bad.map(|entry| entry["message"].to_string()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // When asked to exit, the driver also closes the browser, which it does not when it is killed.
        let pid = nix::unistd::Pid::from_raw(self.driver.id().try_into().unwrap());
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = self.driver.wait();
    }
}
