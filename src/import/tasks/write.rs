//! Writes the new suite: repos without texts and results, manifests, scrubbed texts, and one env.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::needs::{Needs, needs};
use super::read::{PublishedTask, TEST};
use super::{ImportedTask, ImportedTasks, RefusedTask};
use crate::draft::text::TextSource;
use crate::error::{Error, Result};
use crate::files::toml_string;
use crate::suite::{LoadedPaper, Suite};
use crate::workspace::is_left_out;

/// The script that runs the hidden tests: its name in each repo, and its text.
const RUNNER: (&str, &str) = ("autoexperiment_hidden_tests.py", include_str!("hidden_tests.py"));

/// Id of the env that all papers share.
const ENV: &str = "researchcodebench";

/// Extensions of files that are not copied to repos: texts and pictures, which contain results, and the benchmark's own
/// shell scripts.
const LEFT_OUT: [&str; 9] = ["bib", "gif", "ipynb", "jpg", "md", "pdf", "png", "tex", "sh"];

/// Writes all papers that can run here into a new suite in `root`.
///
/// # Errors
/// Kind `Suite` if no paper can run here, or if a paper cannot be loaded after it was written; kind `Machine` if a file
/// cannot be written.
pub fn write(tasks: &[PublishedTask], root: &Path) -> Result<ImportedTasks> {
    let mut imported = ImportedTasks::default();
    let mut packages = BTreeSet::new();
    std::fs::create_dir_all(root.join("papers")).map_err(|error| Error::io("create", root, error))?;
    let mut runnable = Vec::new();
    for task in tasks {
        let Needs { packages: own, unknown, refused } = needs(&task.folder);
        if let Some(reason) = refused {
            imported.refused.push(RefusedTask { paper: task.id.clone(), reason });
            continue;
        }
        packages.extend(own);
        imported.unknown.extend(unknown.iter().map(|module| format!("{module} ({})", task.id)));
        runnable.push(task);
    }
    if runnable.is_empty() {
        let reasons = imported.refused.iter().map(|one| format!("\n{}: {}", one.paper, one.reason));
        return Err(Error::suite(format!("no paper can run here{}", reasons.collect::<String>())));
    }
    imported.packages = packages.into_iter().collect();
    save(&root.join("envs").join(ENV).join("environment.yml"), environment(&imported).as_bytes())?;
    let suite = Suite::open(root)?;
    for task in runnable {
        imported.papers.push(paper(task, &suite)?);
    }
    Ok(imported)
}

/// Returns the text of `environment.yml`. Comments in it name the modules whose packages are not known.
fn environment(imported: &ImportedTasks) -> String {
    let packages = &imported.packages;
    let mut notes = String::new();
    if !imported.unknown.is_empty() {
        notes.push_str(
            "# Add the packages that contain these modules, which tests (of the papers in parentheses) import:\n",
        );
    }
    for module in &imported.unknown {
        let _ = writeln!(notes, "#   {module}");
    }
    let lines = packages.iter().fold(String::new(), |mut lines, package| {
        let _ = writeln!(lines, "      - {package}");
        lines
    });
    let pip = if packages.is_empty() { String::new() } else { format!("  - pip\n  - pip:\n{lines}") };
    format!(
        "{notes}name: {ENV}\nchannels:\n  - conda-forge\n  - nodefaults\ndependencies:\n  - python>=3.12,<3.14\n{pip}"
    )
}

/// Writes the files of one paper and its repo.
fn paper(task: &PublishedTask, suite: &Suite) -> Result<ImportedTask> {
    let (repo, dir) = (suite.repo_dir(&task.id), suite.paper_dir(&task.id));
    copy(&task.folder, &repo)?;
    save(&repo.join(RUNNER.0), RUNNER.1.as_bytes())?;
    let hidden: Vec<String> =
        [RUNNER.0, TEST].into_iter().map(str::to_owned).chain(task.references.iter().cloned()).collect();
    let text = TextSource::read(&task.text)?.without_results(&[]);
    save(&dir.join("paper.md"), text.text.as_bytes())?;
    let mut left_out = Vec::new();
    let manifest = manifest(task, &hidden, &mut left_out);
    save(&dir.join("paper.toml"), manifest.as_bytes())?;
    let loaded = LoadedPaper::load(suite, &task.id)?;
    (0..loaded.paper.units.len()).try_for_each(|place| loaded.prove_mask(place))?;
    let whole: Vec<usize> =
        (0..loaded.paper.units.len()).filter(|&place| loaded.units.parent(place).is_none()).collect();
    Ok(ImportedTask {
        paper: task.id.clone(),
        regions: loaded.paper.units.iter().map(|unit| unit.at.clone()).collect(),
        nested: loaded.paper.units.len() - whole.len(),
        lines: loaded.masked_lines(&whole),
        hidden,
        scrubbed: text.removed,
        left_out,
    })
}

/// Returns the manifest's text.
fn manifest(task: &PublishedTask, hidden: &[String], left_out: &mut Vec<String>) -> String {
    let year = task.published.or(task.first_commit).map_or(0, |date| date.first().year());
    let globs: Vec<String> = hidden.iter().map(|file| toml_string(&globset::escape(file))).collect();
    let mut text = format!(
        "# Imported from ResearchCodeBench.\ntitle = {}\nauthors = []\nyear = {year}\nurl = {}\n",
        toml_string(&task.title),
        toml_string(&task.url)
    );
    for (key, date) in [("published", task.published), ("first_commit", task.first_commit)] {
        if let Some(date) = date {
            let _ = writeln!(text, "{key} = \"{date}\"");
        }
    }
    let _ = write!(
        text,
        "repo = {}\nenv = \"{ENV}\"\n# The tests, the solutions that they compare with, and what runs them.\nhidden = [{}]\n",
        toml_string(&task.id),
        globs.join(", ")
    );
    let context: Vec<String> = task.context.iter().map(|file| format!("`{file}`")).collect();
    let context = if context.is_empty() { String::new() } else { format!(" See also {}.", context.join(", ")) };
    for (module, regions) in &task.annotated {
        let file = module.path().to_string_lossy();
        for found in regions {
            if let Err(error) = &found.region {
                left_out.push(format!("{file}:{}: `{}`: {}", found.line, found.name, error.message));
                continue;
            }
            let name = found.name.replace(['[', ']', '\n'], "_");
            let name = found.number.map_or_else(|| name.clone(), |number| format!("{name} {number}"));
            let number = found.number.map_or_else(String::new, |number| format!("number = {number}\n"));
            let _ = write!(
                text,
                "\n[[region]] # from line {}\nname = {}\nat = {}\ntag = {}\n{number}description = {}\n",
                found.line,
                toml_string(&name),
                toml_string(&file),
                toml_string(&found.name),
                toml_string(&format!("The block \"{}\".{context}", found.name)),
            );
        }
    }
    let quoted = |file: &String| format!(" '{}'", file.replace('\'', r"'\''"));
    let references: Vec<String> = task.references.iter().map(quoted).collect();
    let command = format!("exec python -B {} --remove {TEST}{}", RUNNER.0, references.concat());
    let _ = write!(
        text,
        "\n[[experiment]]\nid = \"tests\"\nhidden = true\ndescription = \"The paper's unit tests: the outcome of each.\"\n\
         command = {}\nresult = {{ json_line = \"stdout\" }}\n",
        toml_string(&command)
    );
    text
}

/// Copies those files of a paper that agents or tests need.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let is_kept = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || !(is_left_out(&name) || name.starts_with('.') || name.starts_with("paper2code_paper"))
    };
    for entry in walkdir::WalkDir::new(from).sort_by_file_name().into_iter().filter_entry(is_kept) {
        let entry = entry.map_err(|error| Error::suite("failed to read a paper's folder").because(error))?;
        let ending = entry.path().extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let is_setting = entry.file_name() == "paper2code.yaml";
        if !entry.file_type().is_file() || is_setting || LEFT_OUT.contains(&ending.as_str()) {
            continue;
        }
        let target = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        let bytes = std::fs::read(entry.path()).map_err(|error| Error::io("read", entry.path(), error))?;
        save(&target, &bytes)?;
    }
    Ok(())
}

fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error| Error::io("write", path, error);
    std::fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
    std::fs::write(path, bytes).map_err(failed)
}
