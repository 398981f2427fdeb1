//! Runs one attempt of an external agent: writes its files, runs its program and reads the answer. The program reaches
//! the model through the gateway, an HTTP server in this process that passes model calls on to the [`Meter`].

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::manifest::{AgentManifest, AnswerPlace, Placeholders};
use super::meter::Meter;
use crate::agent::tail::tail;
use crate::agent::tools::cut_middle;
use crate::agent::trajectory::seconds;
use crate::agent::{AttemptEnd, Context, End, Event, Task, prompts};
use crate::env::Env;
use crate::model::gateway::{self, ListedModel};
use crate::model::{Model, plain_effort};
use crate::sandbox::{Command, EvidenceKind, Exec, ExecLimits, Exit, Fault, OutOfMemory, patience};
use crate::score::find_answer;

/// Folder for the agent's own files inside the sandbox.
const SCRATCH: &str = "/tmp/agent";
/// Model name given to the agent if the provider's name of the model is unknown.
const UNNAMED: &str = "gateway";
/// API key given to the agent if no other process can connect to the gateway. The real key never enters a sandbox.
const KEY: &str = "sandbox";
/// Maximum bytes that are read from each output stream of the program.
const OUTPUT: usize = 4 << 20;
/// Maximum bytes of the answer file.
const ANSWER: u64 = 4 << 20;
/// Maximum characters recorded of each output stream.
const RECORDED: usize = 20_000;
/// Maximum characters quoted from the end of the program's output in the description of the attempt's end.
const DETAIL: usize = 300;
/// Time between SIGTERM and SIGKILL for the agent's program.
const GRACE: Duration = Duration::from_secs(2);
/// Time allowed for an attempt to end when the run is stopped. It covers the program's grace period, the wait for
/// replies of calls in progress, and the sandbox's report of how the program ended.
pub(super) const WINDING_DOWN: Duration = Duration::from_secs(10);
/// Time limit given to the sandbox: so long that it never ends a program. The meter enforces the attempt's time limit
/// instead, because the meter can subtract the time that the program spends waiting for the model.
const NO_LIMIT: Duration = Duration::from_hours(24 * 365);

/// The command that starts the agent, with the path of its answer file and the folder for its files.
struct PreparedLaunch {
    command: Command,
    answer: PathBuf,
    /// The folder for the agent's own files, if the sandbox shares the host's file system; removed on drop.
    _scratch: Option<tempfile::TempDir>,
}

/// How the agent's program reaches the model.
struct ModelEndpoint<'a> {
    /// Address of the gateway inside the sandbox.
    address: String,
    /// Whether the sandbox shares the host's network and file system, so that other processes can connect to the
    /// gateway too.
    shared: bool,
    key: &'a str,
    model: &'a dyn Model,
}

/// Runs one attempt of the agent.
pub(super) async fn run(
    name: &str,
    manifest: &AgentManifest,
    env: Option<&Env>,
    task: &Task,
    context: &mut Context<'_>,
) -> AttemptEnd {
    let Some(model) = context.model else {
        return End::ModelDenied.because(format!("`{name}` needs a model and was given none"));
    };
    let listener = match context.sandbox.listen().await {
        Ok(listener) => listener,
        Err(fault) => return not_started(name, &fault),
    };
    let key = if listener.shared { random_key() } else { KEY.to_owned() };
    let endpoint = ModelEndpoint { address: listener.address.to_string(), shared: listener.shared, key: &key, model };
    let prepared = match lay(name, manifest, env, task, endpoint, context).await {
        Ok(prepared) => prepared,
        Err(ended) => return ended,
    };
    let (gateway, asked) = gateway::serve(
        listener.connections,
        Some(key).filter(|_| listener.shared),
        ListedModel { name: model.provider_name().unwrap_or(UNNAMED).to_owned(), context: model.context() },
    );
    let limits =
        ExecLimits { wall: NO_LIMIT, patience: patience(context.budget.time_left()), grace: GRACE, output: OUTPUT };
    let ended = CancellationToken::new();
    let (stop, cancel) = (listener.stop.clone(), context.cancel.clone());
    if cancel.is_cancelled() {
        // If the run has been stopped already, don't start the program: before its start, a stop signal cannot reach
        // it.
        return End::Cancelled.into();
    }
    let mut meter = Meter::new(
        model,
        context.budget,
        context.trajectory,
        &context.sampling,
        listener.stop,
        cancel.clone(),
        listener.starved,
    );
    let running = async {
        let exec = context.sandbox.exec(&prepared.command, &limits).await;
        ended.cancel();
        exec
    };
    let stopping = async {
        tokio::select! {
            () = cancel.cancelled() => stop.cancel(),
            () = ended.cancelled() => {}
        }
    };
    let calls = meter.budget.calls;
    let (exec, (), ()) = tokio::join!(running, meter.serve(asked, &ended), stopping);
    let is_broken = gateway.is_broken();
    drop(gateway);
    let (refused, failed, stopped) = (meter.refused, meter.failed.take(), meter.stopped.take());
    let (tool_time, asked) = (meter.tool_time(), meter.budget.calls - calls);
    let (unreadable, last) = std::mem::take(&mut meter.unreadable);
    context.budget.charge_time(tool_time);
    let exec = match exec {
        Ok(exec) => exec,
        Err(_) if cancel.is_cancelled() => return End::Cancelled.into(),
        Err(fault @ Fault::Refused(_)) => return not_started(name, &fault),
        Err(fault) => return fault.into(),
    };
    record(&exec, tool_time, context);
    context.note_exit(exec.exit);
    if cancel.is_cancelled() {
        return End::Cancelled.into();
    }
    if let Some(stopped) = stopped.as_ref().filter(|stopped| stopped.end.is_infrastructure()) {
        return stopped.clone();
    }
    if is_broken {
        let evidence = EvidenceKind::Harness.because("the gateway to the model broke down");
        return AttemptEnd::lost(describe_exit(&exec), evidence);
    }
    let killed = stopped.is_none() && matches!(exec.exit, Exit::Signal(9) | Exit::Code(137));
    let is_over_memory = killed && context.sandbox.out_of_memory() == Some(OutOfMemory::Own);
    // Up to here, no evidence was found that the machine failed. So if the program fails before its first model call,
    // the failure counts against the agent, because nothing but the agent has run until then. If all attempts of the
    // agent fail like this, the run stops.
    let unasked = asked == 0 && refused.is_none() && stopped.is_none() && exec.exit != Exit::DiskFull;
    let unheard = || {
        End::NeverAsked.because(match unreadable {
            0 => format!("`{name}` failed before its first call: {}", describe_exit(&exec)),
            _ => format!("none of its {unreadable} requests could be answered: {last}"),
        })
    };
    if unasked && !exec.success() {
        return unheard();
    }
    let answer = match manifest.answer {
        AnswerPlace::Stdout => find_answer(&String::from_utf8_lossy(&exec.stdout)).map(str::to_owned),
        AnswerPlace::File => match context.sandbox.read(&prepared.answer, ANSWER).await {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| !text.trim().is_empty()),
            Err(Fault::Refused(_)) => None,
            Err(fault) => return fault.into(),
        },
    };
    let answered = answer.is_some();
    if unasked && unreadable > 0 && !answered {
        return unheard();
    }
    if let Some(raw) = answer {
        context.trajectory.push(&Event::Answer { raw: raw.clone() });
        context.answer = Some(raw);
    }
    if let Some(stopped) = stopped {
        return stopped;
    }
    if exec.exit == Exit::DiskFull {
        return End::DiskLimit.because("the workspace grew beyond the sandbox's limit");
    }
    if answered {
        return End::Answered.into();
    }
    if let Some(end) = refused {
        return end.into();
    }
    failed.unwrap_or_else(|| {
        let how = describe_exit(&exec);
        End::GaveUp.because(if is_over_memory { format!("it exceeded the memory of its sandbox; {how}") } else { how })
    })
}

/// Writes the agent's files and builds the command that starts it.
async fn lay(
    name: &str,
    manifest: &AgentManifest,
    env: Option<&Env>,
    task: &Task,
    endpoint: ModelEndpoint<'_>,
    context: &mut Context<'_>,
) -> Result<PreparedLaunch, AttemptEnd> {
    let ModelEndpoint { address, shared, key, model } = endpoint;
    // If the sandbox shares the host's file system, all attempts on this host would share the fixed folder [`SCRATCH`].
    // Use a new folder next to the workspace instead, so that both are cleaned up together if this process is killed.
    let beside = context.sandbox.workdir().parent().unwrap_or(Path::new("/tmp"));
    let own = || tempfile::Builder::new().prefix("agent-").tempdir_in(beside);
    let own =
        if shared { Some(own().map_err(|error| not_started(name, &Fault::Refused(error.to_string())))?) } else { None };
    let scratch = own.as_ref().map_or_else(|| SCRATCH.to_owned(), |folder| folder.path().display().to_string());
    let answer = format!("{scratch}/answer.json");
    let told = (manifest.answer == AnswerPlace::File).then_some(answer.as_str());
    let prompt = prompts::external::task(task, context.budget.limits(), told);
    let task_file = format!("{scratch}/task.md");
    let places = Placeholders {
        entries: vec![
            ("task", prompt.clone()),
            ("task_file", task_file.clone()),
            ("answer_file", answer.clone()),
            ("scratch", scratch),
            ("prefix", env.map(|env| env.prefix.display().to_string()).unwrap_or_default()),
            ("node", env.and_then(|env| env.variables.get("NODE").cloned()).unwrap_or_else(|| "node".to_owned())),
            // The processor architecture, as spelled in the names of npm packages.
            ("processor", if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" }.to_owned()),
            ("model", model.provider_name().unwrap_or(UNNAMED).to_owned()),
            ("key", key.to_owned()),
            ("openai_url", format!("http://{address}/v1")),
            ("anthropic_url", format!("http://{address}")),
            ("gemini_url", format!("http://{address}")),
        ],
        perhaps: vec![
            ("context", model.context().map(|tokens| tokens.to_string())),
            (
                "effort",
                context
                    .sampling
                    .effort
                    .map(plain_effort)
                    .and_then(|effort| Some(serde_json::to_value(effort).ok()?.as_str()?.to_owned())),
            ),
        ],
    };
    let files = manifest.files.iter().map(|(path, text)| (places.fill(path), places.fill_lines(text)));
    for (path, text) in files.chain([(task_file, prompt)]) {
        context.sandbox.write(Path::new(&path), text.as_bytes()).await.map_err(|fault| not_started(name, &fault))?;
    }
    let command = Command {
        argv: manifest.command.iter().filter_map(|argument| Some(places.fill_known(argument)?.into())).collect(),
        variables: manifest
            .variables
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), places.fill_known(value)?)))
            .collect(),
        stdin: places.fill(&manifest.stdin).into_bytes(),
        ..Command::default()
    };
    Ok(PreparedLaunch { command, answer: answer.into(), _scratch: own })
}

fn record(exec: &Exec, tool_time: Duration, context: &mut Context<'_>) {
    let text = |bytes: &[u8]| cut_middle(&String::from_utf8_lossy(bytes), RECORDED).into_owned();
    context.trajectory.push(&Event::Program {
        exit: exec.exit,
        stdout: text(&exec.stdout),
        stderr: text(&exec.stderr),
        seconds: seconds(tool_time),
    });
}

/// Describes how the program ended, with its last output.
fn describe_exit(exec: &Exec) -> String {
    let how = match exec.exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::TimedOut => "stopped".to_owned(),
        Exit::DiskFull => "the disk is full".to_owned(),
    };
    let words = [&exec.stderr, &exec.stdout].map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    let Some(words) = words.into_iter().find(|words| !words.is_empty()) else { return how };
    format!("{how}: {}", tail(&words, DETAIL))
}

/// Returns the end of an attempt whose program could not be started.
fn not_started(name: &str, fault: &Fault) -> AttemptEnd {
    AttemptEnd::lost("", EvidenceKind::NotStarted.because(format!("`{name}` cannot be started: {fault}")))
}

/// Generates a key that other users of this machine cannot guess.
fn random_key() -> String {
    use rand::RngExt as _;
    format!("sandbox-{:032x}", rand::rng().random::<u128>())
}
