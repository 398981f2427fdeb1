//! Measures snapshots and workspaces of a large repo: `cargo bench --bench workspace`.
//!
//! The repo is made for the purpose: 4,000 files of 130 MB together, in 100 folders. Prints medians.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use autoexperiment::workspace::{ChangeLimits, LayersKind, Snapshot, Workspace};

const FILES: usize = 4_000;
const BYTES: usize = 130_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let (repo, cache) = (place.path().join("repo"), place.path().join("cache"));
    make_repo(&repo)?;
    println!("repo: {FILES} files, {} MB", BYTES / 1_000_000);

    let start = Instant::now();
    let snapshot = Snapshot::take(&repo, &cache, None)?;
    println!("snapshot, first:            {:9.2} ms", milliseconds(start.elapsed()));
    report("snapshot, cached", 5, |_| Ok(Snapshot::take(&repo, &cache, None).map(drop)?))?;

    let masked: Vec<_> =
        (0..5).map(|file| (format!("{file}/{file}.py").into(), b"def f():\n    raise\n".to_vec())).collect();
    for (name, kind, times) in [("overlay", LayersKind::Overlay, 50), ("copy", LayersKind::Copy, 5)] {
        let mut made = Vec::new();
        report(&format!("{name}, create"), times, |time| {
            made.push(Workspace::create(&snapshot, &masked, &place.path().join(format!("{name}{time}")), kind, None)?);
            Ok(())
        })?;
        report(&format!("{name}, changes"), times, |time| {
            Ok(made[time].changes(&ChangeLimits::default()).map(drop)?)
        })?;
        report(&format!("{name}, remove"), times, |_| Ok(made.pop().map_or(Ok(()), Workspace::remove)?))?;
    }
    Ok(())
}

fn make_repo(repo: &Path) -> std::io::Result<()> {
    let mut state = 1_u32;
    for file in 0..FILES {
        let folder = repo.join((file % 100).to_string());
        std::fs::create_dir_all(&folder)?;
        let bytes: Vec<u8> = (0..BYTES / FILES)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        std::fs::write(folder.join(format!("{file}.py")), bytes)?;
    }
    Ok(())
}

/// Runs `work` and prints its median time.
fn report(
    name: &str,
    times: usize,
    mut work: impl FnMut(usize) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut taken = Vec::new();
    for time in 0..times {
        let start = Instant::now();
        work(time)?;
        taken.push(start.elapsed());
    }
    taken.sort_unstable();
    println!("{:27} {:9.2} ms", format!("{name}:"), milliseconds(taken[taken.len() / 2]));
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
