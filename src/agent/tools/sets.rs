//! Tool sets: several tools under one name, together with the way to give an answer.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AnyTool, bash, change_directory, command_line, describe_tools, edit_file, execute_bash_script,
    execute_python_script, final_answer, inspect_file_lines, list_files, move_file, read_file, super_agent, swe_agent,
    understand_file, write_file,
};
use crate::model;

/// The tools of the `react` agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ToolChoice {
    /// Tools of the original benchmark: files, scripts, and a model that reads and edits files
    #[default]
    Autoexperiment,
    /// Files in a window, searches, and edits by line range that keep the syntax valid, as in SWE-agent
    SweAgent,
    /// A persistent Python session, and edits by exact lines, as in SUPER
    Super,
    /// A single shell tool, as in mini-swe-agent
    Bash,
}

/// How the agent gives its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerMethod {
    /// The agent calls the tool of this name.
    Tool(&'static str),
    /// The agent runs a command that prints [`bash::MARKER`] and, below this line, the answer.
    Printed,
}

/// A set of tools, as chosen by the setting `tools`.
#[derive(Clone, Copy)]
pub struct ToolSet {
    choice: ToolChoice,
    tools: &'static [&'static dyn AnyTool],
    /// Descriptions of the tools for the model, with JSON schemas. They are built once per process.
    shown: &'static [model::Tool],
    answering: AnswerMethod,
    shell: Option<&'static str>,
    python: Option<&'static str>,
    /// An example call as JSON. It is harmless and even useful if a small model copies it.
    first: &'static str,
    /// An example call in the form of a code fence. A long argument, such as a script, is in it without any escapes.
    example: &'static str,
}

impl std::fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ToolSet").field(&self.choice).finish()
    }
}

/// The tools of the original AutoExperiment benchmark (Table 2 and appendix of its paper), and `read_file`.
static AUTOEXPERIMENT: &[&dyn AnyTool] = &[
    &command_line::CommandLine,
    &list_files::ListFiles,
    &change_directory::ChangeDirectory,
    &read_file::ReadFile,
    &inspect_file_lines::InspectFileLines,
    &understand_file::UnderstandFile,
    &write_file::WriteFile,
    &edit_file::EditFile,
    &move_file::Move,
    &execute_python_script::ExecutePythonScript,
    &execute_bash_script::ExecuteBashScript,
    &final_answer::FINAL_ANSWER,
];

static AUTOEXPERIMENT_SHOWN: LazyLock<Vec<model::Tool>> = LazyLock::new(|| describe_tools(AUTOEXPERIMENT));

/// The tools of SWE-agent. `command_line` replaces SWE-agent's shell, and `change_directory` sets the folder in which
/// commands run.
static SWE_AGENT: &[&dyn AnyTool] = &[
    &command_line::CommandLine,
    &change_directory::ChangeDirectory,
    &swe_agent::OpenFile,
    &swe_agent::Goto,
    &swe_agent::Scroll,
    &swe_agent::SearchFile,
    &swe_agent::SearchDir,
    &swe_agent::FindFile,
    &swe_agent::SweEdit,
    &swe_agent::Create,
    &final_answer::SUBMIT,
];

static SWE_AGENT_SHOWN: LazyLock<Vec<model::Tool>> = LazyLock::new(|| describe_tools(SWE_AGENT));

/// The tools of SUPER's agents.
static SUPER: &[&dyn AnyTool] = &[
    &super_agent::Execute,
    &super_agent::Wait,
    &super_agent::Interrupt,
    &super_agent::SuperEdit,
    &final_answer::SUBMIT,
];

static SUPER_SHOWN: LazyLock<Vec<model::Tool>> = LazyLock::new(|| describe_tools(SUPER));

/// The only tool of mini-swe-agent.
static BASH: &[&dyn AnyTool] = &[&bash::Bash];

static BASH_SHOWN: LazyLock<Vec<model::Tool>> = LazyLock::new(|| describe_tools(BASH));

impl ToolSet {
    /// Returns the tool set of this choice.
    #[must_use]
    pub fn from_choice(choice: ToolChoice) -> Self {
        match choice {
            ToolChoice::Autoexperiment => Self {
                choice,
                tools: AUTOEXPERIMENT,
                shown: &AUTOEXPERIMENT_SHOWN,
                answering: AnswerMethod::Tool(final_answer::FINAL_ANSWER.name),
                shell: Some("command_line"),
                python: None,
                first: r#"{"name": "list_files", "arguments": {"path": "."}}"#,
                example: "```command_line\ncat experiments.md\n```\n\nA file is written so: a fence of \
                          `write_file`, in it a line `path: ` with the file's name, below it the file's whole text.",
            },
            ToolChoice::SweAgent => Self {
                choice,
                tools: SWE_AGENT,
                shown: &SWE_AGENT_SHOWN,
                answering: AnswerMethod::Tool(final_answer::SUBMIT.name),
                shell: Some("command_line"),
                python: None,
                first: r#"{"name": "command_line", "arguments": {"command": "ls"}}"#,
                example: "```edit\nstart_line: 3\nend_line: 4\n    total = sum(values)\n    return total\n```",
            },
            ToolChoice::Super => Self {
                choice,
                tools: SUPER,
                shown: &SUPER_SHOWN,
                answering: AnswerMethod::Tool(final_answer::SUBMIT.name),
                shell: None,
                python: Some("execute"),
                first: r#"{"name": "execute", "arguments": {"code": "!ls"}}"#,
                example: "```execute\nimport pathlib\nprint(pathlib.Path('experiments.md').read_text())\n```",
            },
            ToolChoice::Bash => Self {
                choice,
                tools: BASH,
                shown: &BASH_SHOWN,
                answering: AnswerMethod::Printed,
                shell: Some(bash::NAME),
                python: None,
                first: r#"{"name": "bash", "arguments": {"command": "ls"}}"#,
                example: "```bash\ncat experiments.md\n```",
            },
        }
    }

    /// Returns the tools of [`ToolChoice::Autoexperiment`].
    #[must_use]
    pub fn autoexperiment() -> Self {
        Self::from_choice(ToolChoice::Autoexperiment)
    }

    /// The tools as described to the model.
    #[must_use]
    pub const fn definitions(&self) -> &'static [model::Tool] {
        self.shown
    }

    /// The tools that need no model, as described to the model.
    pub(crate) fn without_model(&self) -> impl Iterator<Item = &'static model::Tool> {
        let asks = |name: &str| self.get(name).is_some_and(AnyTool::asks_model);
        self.shown.iter().filter(move |tool| !asks(&tool.name))
    }

    /// Finds a tool by name.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&'static dyn AnyTool> {
        self.tools.iter().copied().find(|tool| tool.name() == name)
    }

    /// How the agent gives its answer with these tools.
    #[must_use]
    pub const fn answering(&self) -> AnswerMethod {
        self.answering
    }

    /// Name of the tool that runs shell commands, if any.
    #[must_use]
    pub const fn shell(&self) -> Option<&'static str> {
        self.shell
    }

    /// Name of the tool that runs Python code, if any.
    #[must_use]
    pub const fn python(&self) -> Option<&'static str> {
        self.python
    }

    /// An example call as JSON.
    #[must_use]
    pub const fn first(&self) -> &'static str {
        self.first
    }

    /// An example call in the form of a code fence. A long argument, such as a script, is in it without any escapes.
    #[must_use]
    pub const fn example(&self) -> &'static str {
        self.example
    }
}
