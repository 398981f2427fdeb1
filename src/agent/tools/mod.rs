//! The tools of agents: one file per tool. A tool's JSON schema is derived from the struct of its arguments.
//!
//! A tool gets the model's arguments and the attempt's [`Context`], and returns the text that the model is shown.
//! Mistakes of the model are [`ToolFailure::Arguments`] or [`ToolFailure::Refused`]; the model is never told about a
//! lost sandbox.

mod bash;
mod change_directory;
mod command_line;
mod edit_file;
mod execute_bash_script;
mod execute_python_script;
pub mod final_answer;
mod inspect_file_lines;
mod list_files;
mod move_file;
mod read_file;
mod sets;
mod show;
mod super_agent;
mod swe_agent;
#[cfg(test)]
mod tests;
mod understand_file;
mod write_file;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::history::History;
use super::{Budget, Context};
use crate::agent::budget::account::{Asker, Unanswered};
use crate::agent::protocol::convert_texts;
use crate::model::{self, Message, ModelError, Reply, Request};
use crate::sandbox::{Command, Exec, Exit, Fault, Loss};

pub use bash::MARKER;
pub use sets::{AnswerMethod, ToolChoice, ToolSet};
pub use show::{OBSERVATION_LIMIT, cut_middle, exec as show_exec, exit as show_exit};

/// Maximum bytes of files that tools read as a whole.
pub(super) const READ_LIMIT: u64 = 4 << 20;

/// Maximum bytes kept of a command's stdout and of its stderr. An observation shows less.
const OUTPUT: usize = 128 << 10;

/// Result of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolOutput {
    /// Text shown to the model.
    Observation(String),
    /// The answer as the model wrote it, which ends the attempt.
    Answer(String),
}

/// Why a tool failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ToolFailure {
    /// Invalid arguments, which count as a format error.
    #[error("{0}")]
    Arguments(String),
    /// The request is impossible, for example because a file does not exist. The text is shown to the model as an
    /// observation.
    #[error("{0}")]
    Refused(String),
    /// The sandbox is lost, which ends the attempt.
    #[error("sandbox lost: {0}")]
    Lost(Loss),
    /// A model call made by the tool failed, which ends the attempt.
    #[error(transparent)]
    Model(ModelError),
}

impl From<Fault> for ToolFailure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Lost(loss) => Self::Lost(loss),
            Fault::Refused(detail) => Self::Refused(detail),
        }
    }
}

/// A tool with typed arguments, from which its schema is derived. A tool has no state; state that lasts between steps
/// is in the [`Session`].
#[async_trait]
pub(crate) trait TypedTool: Send + Sync {
    /// Name of the tool for the model.
    const NAME: &'static str;
    /// Description for the model.
    const DESCRIPTION: &'static str;
    /// Whether the tool waits for something. Repeating such a call may then show more, even if the previous call showed
    /// nothing new.
    const WAITS: bool = false;
    /// Whether the tool asks the model itself, so that attempts without a model cannot use it.
    const ASKS_MODEL: bool = false;
    /// The tool's arguments, a struct.
    type Arguments: DeserializeOwned + JsonSchema + Send;

    /// Runs the tool.
    async fn run(
        &self,
        arguments: Self::Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure>;
}

/// A tool without its argument type, so that tools with different arguments can be in one list and called by name.
#[async_trait]
pub(crate) trait AnyTool: Send + Sync {
    /// Name of the tool for the model.
    fn name(&self) -> &'static str;
    /// Description for the model.
    fn description(&self) -> &'static str;
    /// JSON schema of the arguments, an object.
    fn parameters(&self) -> Value;
    /// Whether the tool waits for something. Repeating such a call may then show more, even if the previous call showed
    /// nothing new.
    fn waits(&self) -> bool {
        false
    }
    /// Whether the tool asks the model itself.
    fn asks_model(&self) -> bool {
        false
    }
    /// Parses the arguments and runs the tool.
    async fn call(
        &self,
        arguments: Map<String, Value>,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure>;
}

#[async_trait]
impl<T: TypedTool> AnyTool for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn description(&self) -> &'static str {
        T::DESCRIPTION
    }

    fn parameters(&self) -> Value {
        schema::<T::Arguments>()
    }

    fn waits(&self) -> bool {
        T::WAITS
    }

    fn asks_model(&self) -> bool {
        T::ASKS_MODEL
    }

    async fn call(
        &self,
        arguments: Map<String, Value>,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let mut arguments = arguments;
        let mut parsed = <T::Arguments as Deserialize<'_>>::deserialize(&arguments);
        if parsed.is_err() {
            // The arguments may be texts instead of numbers or other types. Convert them only now, after parsing has
            // failed, because building the schema takes time.
            convert_texts(&mut arguments, &self.parameters());
            parsed = <T::Arguments as Deserialize<'_>>::deserialize(&arguments);
        }
        let arguments = parsed.map_err(|error| {
            let expected = signature_of(&self.parameters());
            ToolFailure::Arguments(format!("wrong arguments for `{}`: {error}; expected {expected}", T::NAME))
        })?;
        self.run(arguments, context, session).await
    }
}

/// A call that was run: the tool, its arguments and its output.
type ToolRun = (String, Map<String, Value>, String);

/// State that an attempt's tools keep between steps.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// Directory for commands and relative paths; empty for the workspace.
    pub directory: PathBuf,
    /// The sandbox's home folder; looked up when first needed.
    home: Option<PathBuf>,
    /// Which earlier steps the model is shown again. A repeated output may be replaced by the note that it is "the same
    /// as before" only if the model still sees the earlier output.
    pub(super) history: History,
    /// Calls that the previous step ran.
    before: Vec<ToolRun>,
    /// Calls that this step has run so far.
    now: Vec<ToolRun>,
    /// The file that is open in the window, for SWE-agent's tools.
    window: Option<swe_agent::Window>,
}

impl Session {
    /// Creates the session of a model with this history setting.
    #[must_use]
    pub(super) fn with_history(history: History) -> Self {
        Self { history, ..Self::default() }
    }

    /// Begins a step.
    pub fn next_step(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// Whether the previous step made the same call with the same output. Also stores this call for the comparison in
    /// the next step.
    pub(super) fn same_as_before(&mut self, tool: &str, arguments: &Map<String, Value>, shown: &str) -> bool {
        let this = (tool.to_owned(), arguments.clone(), shown.to_owned());
        let same = self.before.contains(&this);
        self.now.push(this);
        same
    }

    /// Resolves a path for the sandbox: relative to the current directory, with `~` replaced. Links and `..` are not
    /// resolved, because only the sandbox knows where they lead.
    ///
    /// # Errors
    /// [`ToolFailure::Refused`] for an empty path, and the errors of asking the sandbox for its home folder.
    pub async fn path(&mut self, context: &mut Context<'_>, path: &str) -> Result<PathBuf, ToolFailure> {
        if path.is_empty() || path.contains('\0') {
            return Err(ToolFailure::Refused(format!("`{}` is not a path", path.escape_debug())));
        }
        let rest = match path {
            "~" => Some(""),
            _ => path.strip_prefix("~/"),
        };
        let Some(rest) = rest else { return Ok(self.directory.join(path)) };
        if self.home.is_none() {
            let asked = context.exec(&Command::shell("printf %s \"$HOME\""), Duration::from_secs(10), 4096).await?;
            let home = String::from_utf8_lossy(&asked.stdout).into_owned();
            self.home = Some(if home.is_empty() { PathBuf::from("/") } else { home.into() });
        }
        Ok(self.home.clone().unwrap_or_default().join(rest))
    }

    /// Runs a command in the current directory for at most `seconds`, or if this is `None`, for the default time limit
    /// of a command.
    ///
    /// # Errors
    /// The errors of the sandbox; [`ToolFailure::Arguments`] for an invalid timeout.
    pub async fn exec(
        &self,
        context: &mut Context<'_>,
        argv: &[&str],
        seconds: Option<f64>,
    ) -> Result<FinishedCommand, ToolFailure> {
        if argv.iter().any(|argument| argument.contains('\0')) {
            return Err(ToolFailure::Refused("a command cannot hold a NUL character".to_owned()));
        }
        let wall = wall(seconds, context.budget)?;
        let command = Command { argv: argv.iter().map(Into::into).collect(), ..Command::default() };
        let exec = context.exec(&command.in_dir(&self.directory), wall, OUTPUT).await?;
        let is_own = exec.exit == Exit::TimedOut && !context.budget.time_left().is_zero();
        Ok(FinishedCommand { exec, own_limit: is_own.then_some(wall) })
    }

    /// Runs a script file with the given interpreter in the current directory.
    async fn script(
        &mut self,
        interpreter: &str,
        path: &str,
        arguments: &[String],
        seconds: Option<f64>,
        context: &mut Context<'_>,
    ) -> Result<FinishedCommand, ToolFailure> {
        let path = self.path(context, path).await?;
        // The sandbox resolves relative paths from the workspace, but the interpreter resolves them from the current
        // directory.
        let path = if path.is_absolute() { path } else { context.sandbox.workdir().join(path) };
        let path = path.to_string_lossy();
        let mut argv = vec![interpreter, &path];
        argv.extend(arguments.iter().map(String::as_str));
        self.exec(context, &argv, seconds).await
    }
}

/// A command that has ended.
#[derive(Debug)]
pub struct FinishedCommand {
    /// The command's exit status and output.
    pub exec: Exec,
    /// The command's own time limit, if the command exceeded it; `None` if it ran out of the attempt's time, or ended
    /// by itself.
    own_limit: Option<Duration>,
}

impl FinishedCommand {
    /// Formats the outcome for the model.
    #[must_use]
    pub fn show(&self) -> String {
        match self.own_limit {
            None => show::exec(&self.exec),
            Some(limit) => show::exec_as(&show::own_limit(limit), &self.exec),
        }
    }
}

/// Returns the time limit of one call: as requested by the model, otherwise [`Budget::command_limit`].
fn wall(seconds: Option<f64>, budget: &Budget) -> Result<Duration, ToolFailure> {
    let Some(seconds) = seconds else { return Ok(budget.command_limit()) };
    if seconds.is_nan() || seconds <= 0.0 {
        return Err(ToolFailure::Arguments("`timeout_seconds` must be more than 0".to_owned()));
    }
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Describes tools for the model.
fn describe_tools(tools: &[&dyn AnyTool]) -> Vec<model::Tool> {
    let show = |tool: &&dyn AnyTool| model::Tool {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        parameters: tool.parameters(),
    };
    tools.iter().map(show).collect()
}

/// Returns the JSON schema of an argument struct, with only the keywords that every provider accepts.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut schema);
    if let Value::Object(map) = &mut schema {
        // Some providers require the key `properties` even if it is empty.
        map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// Removes keywords that some providers reject. Turns "a number or null" into "a number", because an optional argument
/// is expressed by not requiring it.
fn plain(schema: &mut Value) {
    if let Value::Object(map) = schema {
        for keyword in ["title", "format", "minimum", "default", "additionalProperties"] {
            // This removes keywords of the schema itself. An argument of the same name is kept, because it is a key of
            // `properties`.
            map.shift_remove(keyword);
        }
        if let Some(Value::Array(types)) = map.get_mut("type") {
            let named = types.iter().find(|name| *name != "null").cloned();
            map.insert("type".to_owned(), named.unwrap_or_default());
        }
        if let Some(Value::Object(properties)) = map.get_mut("properties") {
            properties.values_mut().for_each(plain);
        }
        if let Some(items) = map.get_mut("items") {
            plain(items);
        }
    }
}

/// Describes a tool's arguments in one line: `{"path": string, "start_line": integer (optional)}`.
#[must_use]
pub(super) fn signature_of(parameters: &Value) -> String {
    let required = |name: &str| {
        parameters["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
    };
    let one = |(name, schema): (&String, &Value)| {
        let optional = if required(name) { "" } else { " (optional)" };
        format!("\"{name}\": {}{optional}", schema["type"].as_str().unwrap_or("any"))
    };
    let all: Vec<String> = parameters["properties"].as_object().into_iter().flatten().map(one).collect();
    format!("{{{}}}", all.join(", "))
}

/// Calls the model for a tool, or for a part of the agent that is recorded like a tool. The call is charged, but is not
/// a step.
///
/// # Errors
/// [`ToolFailure::Refused`] if no call is allowed or the provider refuses this one, [`ToolFailure::Model`] if the model
/// fails.
pub(crate) async fn ask(name: &str, messages: Vec<Message>, context: &mut Context<'_>) -> Result<Reply, ToolFailure> {
    let Some(model) = context.model else {
        return Err(ToolFailure::Refused(format!("`{name}` needs a model, and this attempt has none")));
    };
    let mut request = Request { messages, sampling: context.next_sampling(), ..Request::default() };
    match context.ask(model, Asker::Tool(name), &mut request).await {
        Ok(reply) => Ok(reply),
        Err(Unanswered::NotAsked(refused)) => Err(ToolFailure::Refused(format!("`{name}` was not run: {refused}"))),
        // Do not end the attempt: only the tool's question, a separate conversation, is too long. The agent's own
        // conversation can continue.
        Err(Unanswered::Failed(ModelError::ContextLength(detail))) => {
            Err(ToolFailure::Refused(format!("the file is too long for the model: {detail}")))
        }
        Err(Unanswered::Failed(error @ (ModelError::Refused(_) | ModelError::Rejected(_)))) => {
            Err(ToolFailure::Refused(error.to_string()))
        }
        Err(Unanswered::Failed(error)) => Err(ToolFailure::Model(error)),
    }
}

/// Reads a text file of at most `limit` bytes; refuses files that are not UTF-8.
async fn read_text(context: &mut Context<'_>, path: &Path, shown: &str, limit: u64) -> Result<String, ToolFailure> {
    let bytes = context.read(path, limit).await?;
    String::from_utf8(bytes).map_err(|_| ToolFailure::Refused(format!("`{shown}` is not UTF-8 text")))
}
