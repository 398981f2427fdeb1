//! `autoexperiment report --html` and `--figures`: writes reports to files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::{Error, Result};
use crate::files::write_durably;
use crate::report::figures::files::files;
use crate::report::figures::{FigureInput, figures};
use crate::report::html::{Details, page};
use crate::report::{clean, summarise};
use crate::view::RunReader;

/// Writes the report of the runs in `reader` to `file`, a page in HTML. Data that are too large for the page are
/// written to a folder next to it.
pub fn html(reader: &mut RunReader, file: &Path) -> Result<()> {
    let gathered = reader.gather()?;
    let of = gathered.details();
    let details = Details::new(gathered.samples(), &of);
    let folder = beside(file)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    // Remove the files of an earlier report: they may have the names of this report's files, but contain other samples.
    remove_earlier(&folder)?;
    let is_made = AtomicBool::new(false);
    let beside = |name: &str, text: &str| {
        std::fs::create_dir_all(&folder).map_err(|error| Error::io("make", &folder, error))?;
        is_made.store(true, Ordering::Relaxed);
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| Error::io("write", &path, error))
    };
    let html = page(&gathered.material, &details, &in_url(&name), &beside)?;
    write_durably(file, html.as_bytes())?;
    for note in &gathered.material.notes {
        talk!("{}", clean(note));
    }
    let size = html.len() as f64 / 1e6;
    talk!("wrote `{}` ({size:.1} MB)", file.display());
    if is_made.into_inner() {
        talk!("trajectories are in `{}`: keep it beside the page", folder.display());
    }
    Ok(())
}

/// Extensions of the files of a figure.
const FIGURE_FILES: [&str; 4] = ["svg", "pdf", "png", "csv"];

/// Removes a file, if there is one.
fn remove_file(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// Writes the figures of the runs in `reader` to a folder: each figure as SVG, PDF and PNG, and its numbers as CSV.
pub(super) fn write_figures(reader: &mut RunReader, folder: &Path) -> Result<()> {
    let gathered = reader.gather()?;
    let material = &gathered.material;
    let intervals = material.options.intervals;
    let summary = summarise(&material.records, &material.options);
    let conditions = &material.conditions;
    let source =
        FigureInput { records: &material.records, summary: &summary, conditions, intervals, axis: &material.axis };
    std::fs::create_dir_all(folder).map_err(|error| Error::io("make", folder, error))?;
    let mut written = Vec::new();
    for figure in figures(&source) {
        let path = |extension: &str| folder.join(format!("{}.{extension}", figure.id));
        let Some(chart) = &figure.chart else {
            talk!("not drawn: {}: {}", figure.title, clean(&figure.missing.unwrap_or_default()));
            // Remove this figure's files if an earlier report left some, because they would show other data.
            FIGURE_FILES.iter().try_for_each(|extension| remove_file(&path(extension)))?;
            continue;
        };
        let made = files(chart)?;
        write_durably(&path("svg"), made.svg.as_bytes())?;
        write_durably(&path("pdf"), &made.pdf)?;
        write_durably(&path("png"), &made.png)?;
        write_durably(&path("csv"), figure.table.csv()?.as_bytes())?;
        written.push(figure.id);
    }
    for note in &material.notes {
        talk!("{}", clean(note));
    }
    talk!(
        "wrote {} to `{}`",
        if written.is_empty() { "nothing".to_owned() } else { written.join(", ") },
        folder.display()
    );
    Ok(())
}

/// Returns the folder for the data of a page, which is next to the page: `report.data` for `report.html`.
fn beside(file: &Path) -> Result<PathBuf> {
    if file.file_name().is_none() || file.is_dir() {
        return Err(Error::usage(format!("`{}` is not a valid file name", file.display()))
            .hint("name a file, as in `--html report.html`"));
    }
    let folder = file.with_extension("data");
    if folder == file {
        return Err(Error::usage(
            "the page's name must not end in `.data`, because the folder for its data has that name",
        )
        .hint("let it end in `.html`"));
    }
    Ok(folder)
}

/// Removes the files of an earlier report from its folder, and the folder itself if it is then empty.
fn remove_earlier(folder: &Path) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_ours = name.strip_suffix(".js").and_then(|stem| stem.strip_prefix(['s', 'p', 't']));
        if is_ours.is_some_and(|number| number.parse::<usize>().is_ok()) {
            remove_file(&path)?;
        }
    }
    // This fails if the folder has other files. The folder then stays.
    let _ = std::fs::remove_dir(folder);
    Ok(())
}

/// Escapes a name for a URL: everything but letters, digits and `-._~`.
fn in_url(name: &str) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(name, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_beside_a_page_is_named_after_the_page_and_escaped_in_urls() {
        assert_eq!(in_url("a b#ä.data"), "a%20b%23%C3%A4.data");
        assert_eq!(beside(Path::new("x/report.html")).unwrap(), Path::new("x/report.data"));
        assert!(beside(Path::new("report.data")).is_err());
    }

    #[test]
    fn only_generated_files_are_removed_from_the_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("report.data");
        std::fs::create_dir(&data).unwrap();
        for name in ["s0.js", "t0.js", "p12.js", "mine.js", "s0.txt"] {
            std::fs::write(data.join(name), "").unwrap();
        }
        remove_earlier(&data).unwrap();
        let mut left: Vec<_> = std::fs::read_dir(&data).unwrap().map(|it| it.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["mine.js", "s0.txt"]);
    }
}
