//! Searches for gold and originals in all files that a command in a sandbox can read.

use std::io::Write;
use std::path::Path;

use autoexperiment::sandbox::search::{NeedleHits, WantedSecrets, search};
use autoexperiment::suite::secrets;

use super::fixture::Inside;
use crate::ensure;

/// Returns a suite's secrets, and the names of those that are long enough to be searched for.
fn wanted(suite: &Path, seconds: u64) -> (WantedSecrets, Vec<String>) {
    let mut wanted = WantedSecrets::within(seconds);
    let all = secrets(suite);
    let names = all.into_iter().filter_map(|(name, text)| wanted.add(&text).map(|_| name)).collect();
    (wanted, names)
}

/// Searches for the bundled suite's secrets, and returns those that were found and their places.
async fn seen(
    inside: &mut Inside,
    seconds: u64,
    roots: &[&Path],
) -> Result<(Vec<(String, String)>, NeedleHits), String> {
    seen_of(Path::new(env!("CARGO_MANIFEST_DIR")), inside, seconds, roots).await
}

/// Same as [`seen`], for another suite.
async fn seen_of(
    suite: &Path,
    inside: &mut Inside,
    seconds: u64,
    roots: &[&Path],
) -> Result<(Vec<(String, String)>, NeedleHits), String> {
    let (mut wanted, names) = wanted(suite, seconds);
    wanted.roots.extend(roots.iter().map(|root| root.to_path_buf()));
    let found = search(&mut *inside.sandbox, wanted).await.map_err(|fault| fault.to_string())?;
    Ok((found.hits.iter().map(|(secret, at)| (names[*secret as usize].clone(), at.clone())).collect(), found))
}

fn gold() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("papers/ucb/gold.json")).unwrap()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

crate::cases! {
    a_search_sees_what_is_planted_and_nothing_else(fixture) {
        let mut inside = fixture.start().await?;
        let binary = [&[0x7f; 1000][..], &packed(&gold()), &[0; 1000]].concat();
        inside.write("planted", &binary).await.map_err(|fault| fault.to_string())?;
        let exe = inside.exe.clone();
        let (hits, found) = seen(&mut inside, 40, &[&exe]).await?;
        println!("  searched {} files, {:.2} GB, complete: {}", found.files, found.bytes as f64 / 1e9, found.is_complete);
        ensure!(hits.iter().any(|(name, at)| name == "papers/ucb/gold.json" && at.ends_with("planted")), "{hits:?}");
        let others: Vec<_> = hits.iter().filter(|(_, at)| !at.ends_with("planted")).collect();
        ensure!(others.is_empty(), "{others:?}");
        inside.end().await?;
    }

    programs_and_packages_that_hold_a_suite_are_hidden_in_a_folder_that_is_shown(fixture) {
        let prefix = fixture.host.path().join("prefix");
        let secret = packed(&gold());
        let write = |path: &str, bytes: &[u8]| {
            let path = prefix.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        write("bin/autoexperiment", &[&vec![0; 1 << 20], secret.as_slice()].concat());
        write("share/autoexperiment-0.1.0-py3-none-linux_x86_64.whl", &secret);
        write("suite/papers/ucb/gold.json", &gold());
        write("lib/shown.txt", b"shown");
        for above in prefix.ancestors().take_while(|path| path.starts_with(std::env::temp_dir()) && *path != std::env::temp_dir()) {
            std::fs::set_permissions(above, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        let (mut spec, written) = fixture.spec();
        spec.read_only.push(prefix.clone());
        spec.hidden.push(prefix.join("suite"));
        let sandbox = fixture.backend.start(&spec).await.map_err(|error| error.to_string())?;
        let mut inside = Inside { sandbox, exe: fixture.exe.clone(), written };
        let shown = inside.say(&format!("cat {}/lib/shown.txt", prefix.display())).await?;
        ensure!(shown.trim() == "shown", "what is not hidden is not shown: {shown}");
        let (hits, _) = seen(&mut inside, 5, &[&prefix]).await?;
        ensure!(hits.is_empty(), "{hits:?}");
        inside.end().await?;
    }

    hidden_files_of_a_suite_are_searched_for_and_found_only_where_they_are_planted(fixture) {
        let (shown, suite) = (fixture.host.path().join("shown"), fixture.host.path().join("shown/suite"));
        let expected = (0..200).map(|line| format!("row {line}: {}\n", line * line * 7919 % 10_007)).collect::<Vec<_>>().concat();
        let tests = (0..40).map(|line| format!("    assert f({line}) == {}\n", line * 7907 % 5003)).collect::<Vec<_>>().concat();
        let manifest = "repo = \"r\"\nhidden = [\"expected.txt\", \"tests/*\"]\n".to_owned();
        for (path, text) in [
            ("papers/p/paper.toml", manifest),
            ("repos/r/expected.txt", expected.clone()),
            ("repos/r/tests/hidden.py", format!("def test_f():\n{tests}")),
            ("repos/r/open.txt", expected.replace("row", "line")),
        ] {
            let path = suite.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (mut spec, written) = fixture.spec();
        spec.read_only.push(shown.clone());
        spec.hidden.push(suite.clone());
        let sandbox = fixture.backend.start(&spec).await.map_err(|error| error.to_string())?;
        let mut inside = Inside { sandbox, exe: fixture.exe.clone(), written };
        let (hits, _) = seen_of(&suite, &mut inside, 5, &[&shown]).await?;
        ensure!(hits.is_empty(), "{hits:?}");
        inside.write("planted", &packed(expected.as_bytes())).await.map_err(|fault| fault.to_string())?;
        inside.write("planted.py", format!("def test_f():\n{tests}").as_bytes()).await.map_err(|fault| fault.to_string())?;
        let (hits, _) = seen_of(&suite, &mut inside, 5, &[&shown]).await?;
        let found: std::collections::BTreeSet<&str> = hits.iter().map(|(name, _)| name.as_str()).collect();
        ensure!(found == ["repos/r/expected.txt", "repos/r/tests/hidden.py"].into(), "{hits:?}");
        inside.end().await?;
    }

    what_the_harness_has_inherited_from_its_own_caller_is_closed_inside(fixture) {
        let planted = fixture.host.path().join("open");
        std::fs::write(&planted, gold()).unwrap();
        // Like a redirection of a shell, the duplicate stays open in programs that this process starts.
        let inherited = nix::unistd::dup(std::fs::File::open(&planted).unwrap()).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&inherited);
        let mut inside = fixture.start().await?;
        // Use bash, because other shells accept only descriptors of one digit.
        let said = inside.say(&format!("bash -c 'true <&{number}'")).await?;
        ensure!(said.contains("Bad file descriptor"), "{number}: {said}");
        inside.end().await?;
    }
}
