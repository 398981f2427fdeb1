//! `ml-agent`: finds the repo that an instruction belongs to among all repos of the suite, then writes the program.
//! Follows ML-Bench's agent of that name, in four stages:
//!
//! 1. *Retrieve.* The model gives search words, and BM25 ranks the documentation of all repos by them.
//! 2. *Sort.* The model sorts the highest-ranked repos.
//! 3. *Plan.* The model is shown the files and documentation of one repo after another until it accepts one.
//! 4. *Generate.* The model reads files of that repo, one per reply, until it writes the program or rejects the repo.
//!    After a rejection, the agent plans with the next repo. Models also ask for a file by a shell command in a code
//!    block, such as `cat main.py`; such a block is not the program.

use std::fmt::Write as _;

use async_trait::async_trait;

use super::limits::MlAgentLimits;
use crate::agent::plain_chat::{NoReply, PlainChat};
use crate::agent::prompts::ml_agent as prompts;
use crate::agent::retrieval::bm25::{Bm25, ranked};
use crate::agent::tools::cut_middle;
use crate::agent::{Agent, AttemptEnd, Context, End, OneReply, ShownRepo, Task, experiment};
use crate::model::{Model, Role};
use crate::sample::COMMAND;

/// Characters shown of each repo's documentation when the model sorts repos.
const BEGINNING: usize = 1500;
/// Maximum number of paths listed per repo.
const MOST_PATHS: usize = 200;

/// The `ml-agent` agent.
#[derive(Debug)]
pub struct MlAgent {
    label: String,
    reach: MlAgentLimits,
}

impl MlAgent {
    /// Creates the agent with this label.
    pub const fn new(label: String, reach: MlAgentLimits) -> Self {
        Self { label, reach }
    }
}

#[async_trait]
impl Agent for MlAgent {
    fn name(&self) -> &str {
        &self.label
    }

    fn needs_model(&self) -> bool {
        true
    }

    fn only(&self) -> Option<&'static str> {
        Some(COMMAND)
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        let (task, model) = match OneReply::given(self.name(), task, context) {
            Ok(given) => given,
            Err(ended) => return ended,
        };
        match work(task, self.reach, model, context).await {
            Ok(Some(program)) => {
                experiment::answer_raw(program, context);
                End::Answered.into()
            }
            Ok(None) => End::GaveUp.because("no repo was accepted and given a program"),
            Err(stop) => stop.into(),
        }
    }
}

/// Tries one repo after another until the model writes a program for one of them, and returns the reply with that
/// program. Returns `None` if no repo gets a program.
async fn work(
    task: &OneReply,
    reach: MlAgentLimits,
    model: &dyn Model,
    context: &mut Context<'_>,
) -> Result<Option<String>, NoReply> {
    let mut talk = PlainChat::over(model, Vec::new());
    talk.add_message(Role::User, prompts::keywords(&task.unplaced, reach.words), context);
    let words = talk.ask(None, context).await?.text;
    let docs = task.shelf.iter().map(|repo| repo.docs.as_str());
    let found = ranked(&Bm25::new(docs).scores(&words));
    let found: Vec<&ShownRepo> = found.into_iter().take(reach.repos).map(|place| &task.shelf[place]).collect();
    let beginnings: Vec<(&str, String)> =
        found.iter().map(|repo| (repo.id.as_str(), repo.docs.chars().take(BEGINNING).collect())).collect();
    let shown: Vec<(&str, &str)> = beginnings.iter().map(|(id, text)| (*id, text.as_str())).collect();
    talk.add_message(Role::User, prompts::sort(&shown), context);
    let order = talk.ask(None, context).await?.text;
    for repo in sorted(found, &order) {
        let program = attempt(repo, task, reach, model, context).await?;
        if program.is_some() {
            return Ok(program);
        }
    }
    Ok(None)
}

/// Sorts repos in the order in which a reply names them. Repos that the reply doesn't name come last, in their old
/// order.
fn sorted<'a>(found: Vec<&'a ShownRepo>, reply: &str) -> Vec<&'a ShownRepo> {
    let named: Vec<&str> = reply.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))).collect();
    let mut found = found;
    found.sort_by_key(|repo| named.iter().position(|name| *name == repo.id).unwrap_or(usize::MAX));
    found
}

/// Plans and writes the program for one repo; returns `None` if the model rejects the repo.
async fn attempt(
    repo: &ShownRepo,
    task: &OneReply,
    reach: MlAgentLimits,
    model: &dyn Model,
    context: &mut Context<'_>,
) -> Result<Option<String>, NoReply> {
    let mut paths: Vec<&str> = repo.files.iter().map(|(path, _)| path.as_str()).collect();
    let more = paths.len().saturating_sub(MOST_PATHS);
    paths.truncate(MOST_PATHS);
    let mut files = paths.join("\n");
    if more > 0 {
        let _ = write!(files, "\n[and {more} more]");
    }
    let mut talk = PlainChat::over(model, Vec::new());
    let prompt = prompts::plan(&task.unplaced, &repo.id, &files, &cut_middle(&repo.docs, reach.docs));
    talk.add_message(Role::User, prompt, context);
    let accepts = talk.ask(None, context).await?.text;
    if first_word(&accepts) != "accept" {
        return Ok(None);
    }
    let mut question = prompts::generate(task.fence, reach.replies);
    for done in 1..=reach.replies {
        talk.add_message(Role::User, question, context);
        let reply = talk.ask(None, context).await?.text;
        let told = match Action::parse(&reply) {
            Action::Write => return Ok(Some(reply)),
            Action::Reject => return Ok(None),
            Action::Read(path) => match repo.files.iter().find(|(known, _)| *known == path) {
                Some((_, text)) => cut_middle(text, reach.file).into_owned(),
                None => format!("There is no file `{path}`."),
            },
            Action::Unclear => {
                let told = format!("Write `read PATH`, `reject`, or the program in one ```{} block.", task.fence);
                context.count_format_error(&told);
                told
            }
        };
        question = prompts::ask_for_program(&told, reach.replies - done);
    }
    Ok(None)
}

/// The action that a reply asks for.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Read(String),
    Write,
    Reject,
    Unclear,
}

impl Action {
    /// Interprets a reply. Code blocks are the program, unless they contain nothing but commands to read.
    fn parse(reply: &str) -> Self {
        let blocks: Vec<String> = fenced_blocks(reply).collect();
        let code: Vec<&str> = blocks.iter().flat_map(|block| command_lines(block)).collect();
        if !code.iter().all(|line| is_reading(line)) {
            return Self::Write;
        }
        let line = code.first().copied().or_else(|| reply.trim().lines().next()).unwrap_or_default();
        Self::of_line(line.trim_matches(['`', '*', ' ']))
    }

    /// Interprets a line as a command.
    fn of_line(line: &str) -> Self {
        let file = |path: &str| path.trim_matches(['`', '\'', '"', ' ']).trim_start_matches("./").to_owned();
        match (first_word(line).as_str(), line.split_once(char::is_whitespace)) {
            ("reject", _) => Self::Reject,
            ("read", Some((_, path))) => Self::Read(file(path)),
            // The word must be in lower case, because a sentence of prose, which is not a command, begins with a
            // capital letter. The path is the last word, because a shell command may have options before it.
            (word @ ("cat" | "less" | "head" | "tail"), Some((first, rest))) if first == word && is_reading(line) => {
                Self::Read(file(rest.split_whitespace().next_back().unwrap_or_default()))
            }
            _ => Self::Unclear,
        }
    }
}

/// Returns the contents of the code blocks in a reply. A last block may lack its closing fence. The text after an
/// opening fence is a language and left out, unless it is a command to read, such as `read main.py`.
fn fenced_blocks(reply: &str) -> impl Iterator<Item = String> {
    reply.split("```").skip(1).step_by(2).map(|block| {
        let Some((info, code)) = block.split_once('\n') else {
            let shells = ["bash ", "sh ", "shell "];
            let code = shells.iter().find_map(|shell| block.strip_prefix(*shell));
            return code.unwrap_or(block).to_owned();
        };
        if !is_reading(info) {
            return code.to_owned();
        }
        // The command's path may be on the next line.
        let is_word = info.split_whitespace().count() == 1;
        if is_word { format!("{} {code}", info.trim()) } else { block.to_owned() }
    })
}

/// Returns the lines of a code block without blank lines, comments and shell prompts.
fn command_lines(block: &str) -> impl Iterator<Item = &str> {
    let lines = block.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.strip_prefix("$ ").unwrap_or(line))
}

/// Whether a line looks like a command to read or list files, or to reject the repo.
fn is_reading(line: &str) -> bool {
    let words = ["read", "reject", "cat", "less", "head", "tail", "ls", "find", "tree"];
    words.contains(&first_word(line).as_str()) && !line.contains(['|', '>', ';', '&'])
}

/// Returns the first word of a reply, in lower case and without punctuation.
fn first_word(reply: &str) -> String {
    let word = reply.split_whitespace().next().unwrap_or_default();
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_parsed_as_read_write_reject_or_unclear() {
        for (reply, action) in [
            ("read `./src/a b.py`", Action::Read("src/a b.py".into())),
            ("`read main.py`\n", Action::Read("main.py".into())),
            ("Reject.", Action::Reject),
            ("So:\n```bash\nls\n```", Action::Unclear),
            ("```bash\n# The options:\n$ cat README.md\n```", Action::Read("README.md".into())),
            ("I begin with\n```\nhead -n 50 './src/main.py'\ncat b.py\n```", Action::Read("src/main.py".into())),
            ("```read main.py```", Action::Read("main.py".into())),
            ("```read main.py\n```", Action::Read("main.py".into())),
            ("```bash cat main.py```", Action::Read("main.py".into())),
            ("```read\nsrc/a b.py\n```", Action::Read("src/a b.py".into())),
            ("```\nreject\n```", Action::Reject),
            ("cat README.md", Action::Read("README.md".into())),
            ("Head over to main.py", Action::Unclear),
            ("cat", Action::Unclear),
            ("read main.py\n```\n```", Action::Read("main.py".into())),
            ("```bash\ncat a.py\n```\n```bash\npython a.py --epochs 3\n```", Action::Write),
            ("```bash\nfind . -name a.txt | xargs python a.py\n```", Action::Write),
            ("```bash\ncat a.txt > b.txt\n```", Action::Write),
            ("```python\nimport a\na.main()\n```", Action::Write),
            ("```bash python a.py```", Action::Write),
            ("```bash\npython a.py", Action::Write),
            ("I would read main.py", Action::Unclear),
            ("", Action::Unclear),
        ] {
            assert_eq!(Action::parse(reply), action, "{reply}");
        }
    }

    #[test]
    fn repos_are_sorted_by_the_order_in_which_the_reply_names_them() {
        let repo = |id: &str| ShownRepo { id: id.to_owned(), docs: String::new(), files: Vec::new() };
        let (a, b, c) = (repo("a"), repo("b-2"), repo("c"));
        let names =
            |reply| sorted(vec![&a, &b, &c], reply).iter().map(|it| it.id.as_str()).collect::<Vec<_>>().join(" ");
        assert_eq!(names("1. `b-2`\n2. a"), "b-2 a c");
        assert_eq!(names("none of them"), "a b-2 c");
    }
}
