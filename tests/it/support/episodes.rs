//! Servers of episodes, and clients that speak OpenEnv's protocol to them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::support::Lab;

/// A running server, which is stopped when dropped.
pub struct Served {
    process: Child,
    pub address: String,
}

impl Served {
    /// Starts `serve` on a free port, in a run called `s`.
    pub fn start(lab: &Lab, options: &[&str]) -> Self {
        let mut arguments = vec!["serve", "--name", "s", "--no-baseline"];
        if !options.contains(&"--socket") && !options.contains(&"--listen") {
            arguments.extend(["--port", "0"]);
        }
        arguments.extend(options);
        Self::run(lab.command(&arguments))
    }

    /// Starts a command that prints its address.
    pub fn run(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        if address.is_empty() {
            let mut said = String::new();
            process.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
            panic!("the server did not start: {said}");
        }
        Self { process, address: address.trim().to_owned() }
    }

    /// Returns host and port.
    pub fn authority(&self) -> &str {
        self.address.strip_prefix("http://").unwrap().split('/').next().unwrap()
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Interrupts the server like Ctrl-C; returns its exit code and its stderr.
    pub fn stop(mut self) -> (i32, String) {
        self.interrupt();
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.process.wait().unwrap().code().unwrap_or(-1), said)
    }

    /// Kills the server, so that it cannot end its episodes.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn interrupt(&self) {
        let _ = kill(Pid::from_raw(i32::try_from(self.process.id()).unwrap()), Signal::SIGINT);
    }

    pub fn client(&self) -> Client {
        self.client_at("/ws?client=policy")
    }

    pub fn client_at(&self, path: &str) -> Client {
        self.try_client(path).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn try_client(&self, path: &str) -> Result<Client, String> {
        let stream = TcpStream::connect(self.authority()).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
        let url = format!("ws://{}{path}", self.authority());
        let (socket, _) = tungstenite::client(url, stream).map_err(|error| error.to_string())?;
        Ok(Client { socket })
    }

    /// Sends a request over HTTP; returns the status and the body.
    pub fn http(&self, method: &str, path: &str, body: Option<&Value>, headers: &[&str]) -> (u16, Value) {
        use std::io::Write as _;
        let mut stream = TcpStream::connect(self.authority()).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let host = if headers.iter().any(|header| header.starts_with("Host:")) {
            String::new()
        } else {
            format!("Host: {}\r\n", self.authority())
        };
        let others: String = headers.iter().flat_map(|header| [header, "\r\n"]).collect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{host}{others}Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned())))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.interrupt();
        let _ = self.process.wait();
    }
}

/// A client's session.
pub struct Client {
    pub socket: WebSocket<TcpStream>,
}

impl Client {
    pub fn send(&mut self, text: impl Into<String>) {
        self.socket.send(Message::text(text.into())).unwrap();
    }

    /// Returns the next answer: its type and its data.
    pub fn answer(&mut self) -> (String, Value) {
        loop {
            match self.socket.read().unwrap() {
                Message::Text(text) => {
                    let value: Value = serde_json::from_str(text.as_str()).unwrap();
                    return (value["type"].as_str().unwrap().to_owned(), value["data"].clone());
                }
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn ask(&mut self, kind: &str, data: &Value) -> (String, Value) {
        self.send(json!({ "type": kind, "data": data }).to_string());
        self.answer()
    }

    /// Sends a message that must be answered with an error, and returns the error's code.
    pub fn refused(&mut self, text: &str) -> String {
        self.send(text);
        let (kind, data) = self.answer();
        assert_eq!(kind, "error", "{data}");
        assert!(!data["message"].as_str().unwrap().is_empty());
        data["code"].as_str().unwrap().to_owned()
    }

    pub fn reset(&mut self, data: &Value) -> Value {
        let (kind, data) = self.ask("reset", data);
        assert_eq!(kind, "observation", "{data}");
        data
    }

    /// Calls a tool and waits for its result.
    pub fn step(&mut self, tool: &str, arguments: &Value) -> Value {
        let (mut kind, mut data) = self.ask("step", &json!({ "tool": tool, "arguments": arguments }));
        while data["observation"]["pending"] == true {
            (kind, data) = self.ask("step", &json!({ "tool": "wait" }));
        }
        assert_eq!(kind, "observation", "{data}");
        data
    }

    pub fn shell(&mut self, command: &str) -> String {
        let shown = self.step("command_line", &json!({ "command": command }));
        shown["observation"]["text"].as_str().unwrap_or_default().to_owned()
    }

    pub fn submit(&mut self, answer: &Value) -> Value {
        self.step("submit", &json!({ "answer": answer.to_string() }))
    }
}

/// Returns the gold result of an experiment of the tiny suite, wherever the file keeps it.
pub fn gold(lab: &Lab, id: &str) -> Value {
    fn find(gold: &Value, id: &str) -> Option<Value> {
        let fields = gold.as_object()?;
        let own = fields.get(id).and_then(|own| own.get("result"));
        own.cloned().or_else(|| fields.values().find_map(|value| find(value, id)))
    }
    let gold: Value = serde_json::from_str(&lab.read("papers/tiny/gold.json")).unwrap();
    find(&gold, id).unwrap_or_else(|| panic!("no gold of `{id}` in {gold:#}"))
}

/// Returns the right answer for a sample of the tiny suite that is tested by all experiments. Other samples need only a
/// part of this answer.
pub fn answers(lab: &Lab) -> Value {
    json!({ "Experiment 1": gold(lab, "means"), "Experiment 2": gold(lab, "spread"), "Experiment 3": gold(lab, "table") })
}

/// Returns all descendants of a process.
pub fn descendants(of: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut left = vec![of];
    while let Some(parent) = left.pop() {
        for task in
            std::fs::read_dir(Path::new("/proc").join(parent.to_string()).join("task")).into_iter().flatten().flatten()
        {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
                found.push(child);
                left.push(child);
            }
        }
    }
    found
}
