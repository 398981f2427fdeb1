//! Tests of the sources of conda settings, their precedence, and the resulting locations of channels.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{CondaSettings, CondarcLocations, Priority};
use crate::error::{Error, FailureKind, Result};

/// A folder with the configuration files of a machine and a user that exist only for a test.
struct SettingsFixture(TempDir);

impl SettingsFixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let lab = Self(TempDir::new().unwrap());
        for (path, text) in files {
            let path = lab.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        lab
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Returns where conda's settings come from: the files in the fixture's folder and these environment variables. In
    /// the variables' values, `LAB` stands for the fixture's folder.
    fn places(&self, variables: &[(&str, &str)]) -> CondarcLocations {
        let lab = self.0.path().display().to_string();
        let home = [("HOME", "LAB/home")];
        let variables = home.iter().chain(variables);
        CondarcLocations {
            root: self.0.path().to_owned(),
            variables: variables.map(|(name, value)| ((*name).to_owned(), value.replace("LAB", &lab))).collect(),
        }
    }

    fn read(&self, variables: &[(&str, &str)], alias: Option<&str>) -> Result<CondaSettings> {
        CondaSettings::read(&self.places(variables), alias)
    }
}

fn user(text: &str) -> CondaSettings {
    SettingsFixture::new(&[("home/.condarc", text)]).read(&[], None).unwrap()
}

/// Returns the URLs of each channel. If a channel has several mirrors, their URLs are joined by `|`.
fn located(settings: &CondaSettings, channels: &[&str]) -> Result<Vec<String>> {
    let channels: Vec<(String, usize)> =
        channels.iter().zip(3..).map(|(one, line)| ((*one).to_owned(), line)).collect();
    let found = settings.locate(Path::new("/suite/envs/e/environment.yml"), &channels)?;
    Ok(found
        .iter()
        .map(|one| one.urls.iter().map(rattler_conda_types::ChannelUrl::as_str).collect::<Vec<_>>().join("|"))
        .collect())
}

fn line(error: &Error) -> Option<usize> {
    error.place.as_ref().and_then(|(_, line)| *line)
}

#[test]
fn without_any_configuration_channels_are_located_below_rattlers_default_url() {
    let lab = SettingsFixture::new(&[]);
    let settings = lab.read(&[], None).unwrap();
    assert_eq!(settings, CondaSettings::default());
    let public = rattler_conda_types::ChannelConfig::default_with_root_dir("/".into()).channel_alias;
    let public = public.as_str().trim_end_matches('/');
    assert_eq!(
        located(&settings, &["conda-forge", "conda-forge/label/dev"]).unwrap(),
        [format!("{public}/conda-forge/"), format!("{public}/conda-forge/label/dev/")]
    );
}

#[test]
fn settings_take_precedence_in_order_from_the_machines_file_to_the_command_line() {
    let steps = [
        "etc/conda/.condarc",
        "etc/conda/condarc",
        "etc/conda/condarc.d/a.yml",
        "etc/conda/condarc.d/b.yaml",
        "var/lib/conda/condarc",
        "root/.condarc",
        "xdg/conda/condarc",
        "home/.config/conda/condarc",
        "home/.conda/.condarc",
        "home/.condarc",
        "prefix/.condarc",
        "named.yml",
    ];
    let texts: Vec<String> =
        (0..steps.len()).map(|step| format!("channel_alias: https://{step}.example/\nchannels: [c{step}]\n")).collect();
    let variables = [
        ("CONDA_ROOT", "LAB/root"),
        ("XDG_CONFIG_HOME", "LAB/xdg"),
        ("CONDA_PREFIX", "LAB/prefix"),
        ("CONDARC", "LAB/named.yml"),
    ];
    for last in 0..steps.len() {
        let files: Vec<(&str, &str)> =
            steps.iter().zip(&texts).take(last + 1).map(|(path, text)| (*path, text.as_str())).collect();
        let named = if last + 1 == steps.len() { 4 } else { 3 };
        let settings = SettingsFixture::new(&files).read(&variables[..named], None).unwrap();
        assert_eq!(settings.alias, Some(format!("https://{last}.example")), "{}", steps[last]);
        let channels: Vec<String> = (0..=last).rev().map(|step| format!("c{step}")).collect();
        assert_eq!(settings.channels, channels);
    }
    let lab =
        SettingsFixture::new(&[("home/.condarc", "channel_alias: https://file.example\nchannels: [file, both]\n")]);
    let variables = [("CONDA_CHANNEL_ALIAS", "https://variable.example/"), ("CONDA_CHANNELS", "both, variable")];
    let settings = lab.read(&variables, None).unwrap();
    assert_eq!(settings.alias.as_deref(), Some("https://variable.example"));
    assert_eq!(settings.channels, ["both", "variable", "file"]);
    let settings = lab.read(&variables, Some("file:///srv/conda/")).unwrap();
    assert_eq!(settings.alias.as_deref(), Some("file:///srv/conda"));
}

#[test]
fn with_a_restricted_search_path_only_the_named_configuration_file_is_read() {
    let lab = SettingsFixture::new(&[("home/.condarc", "channels: [home]\n"), ("named", "channels: [named]\n")]);
    let settings = lab.read(&[("CONDA_RESTRICT_RC_SEARCH_PATH", "1"), ("CONDARC", "~/../named")], None).unwrap();
    assert_eq!(settings.channels, ["named"]);
    let error = lab.read(&[("CONDARC", "LAB/nowhere")], None).unwrap_err();
    assert!(error.message.contains("nowhere"), "{error}");
}

#[test]
fn the_folder_of_conda_is_found_from_the_path_of_its_program() {
    let lab = SettingsFixture::new(&[("miniforge3/.condarc", "channels: [conda-forge]\n")]);
    for told in [("CONDA_EXE", "LAB/miniforge3/bin/conda"), ("MAMBA_ROOT_PREFIX", "LAB/miniforge3")] {
        assert_eq!(lab.read(&[told], None).unwrap().channels, ["conda-forge"], "{told:?}");
    }
}

#[test]
fn unknown_keys_and_empty_files_are_ignored() {
    assert_eq!(user("# nothing\n"), CondaSettings::default());
    assert_eq!(user(""), CondaSettings::default());
    assert_eq!(
        user("auto_activate_base: false\nchannels:\nssl_verify: true\nenvs_dirs: [/x]\n"),
        CondaSettings::default()
    );
}

#[test]
fn configured_channels_follow_the_channels_of_an_environment_yml_unless_it_lists_nodefaults() {
    let settings = user(
        "channels: [extra, defaults]\ndefault_channels: [https://a.example/main, own]\nchannel_alias: http://b.example\n",
    );
    let (main, own) = ("https://a.example/main/", "http://b.example/own/");
    assert_eq!(
        located(&settings, &["conda-forge"]).unwrap(),
        ["http://b.example/conda-forge/", "http://b.example/extra/", main, own]
    );
    assert_eq!(located(&settings, &["conda-forge", "nodefaults"]).unwrap(), ["http://b.example/conda-forge/"]);
    assert_eq!(located(&settings, &["nodefaults", "defaults", "own"]).unwrap(), [main, own]);
    let settings = user("channel_alias: http://b.example\n");
    assert_eq!(located(&settings, &["conda-forge"]).unwrap(), ["http://b.example/conda-forge/"]);
    assert_eq!(located(&settings, &[]).unwrap(), ["http://b.example/main/", "http://b.example/r/"]);
}

#[test]
fn custom_channels_multichannels_and_mirrors_are_resolved() {
    let settings = user(
        "channel_alias: https://a.example\ncustom_channels:\n  mine: https://b.example/x/\n  team/sub: file:///srv\n\
         custom_multichannels:\n  both: [mine, other]\nmirrored_channels:\n  conda-forge: [https://m1.example/cf, oci://m2, https://m3.example/cf/]\n",
    );
    assert_eq!(
        located(&settings, &["mine", "mine/label/dev", "team/sub", "team", "both", "conda-forge", "nodefaults"])
            .unwrap(),
        [
            "https://b.example/x/mine/",
            "https://b.example/x/mine/label/dev/",
            "file:///srv/team/sub/",
            "https://a.example/team/",
            "https://a.example/other/",
            "https://m1.example/cf/|https://m3.example/cf/",
        ]
    );
    // The lock contains the channel's name, so any mirror of the channel may be used.
    let one = settings.locate_one("mine", Path::new("conda.lock")).unwrap();
    assert_eq!((one.name.as_str(), one.urls[0].as_str()), ("mine", "https://b.example/x/mine/"));
}

#[test]
fn channel_urls_are_kept_and_channel_paths_are_relative_to_the_file_that_lists_them() {
    let lab = SettingsFixture::new(&[("home/.condarc", "channels: [./near, ~/mine, /abs/a b]\n")]);
    let settings = lab.read(&[], None).unwrap();
    let home = lab.path("home").display().to_string();
    assert_eq!(
        located(&settings, &["https://u.example/c", "file:///srv/c/", "./own", "../shared"]).unwrap(),
        [
            "https://u.example/c/".to_owned(),
            "file:///srv/c/".to_owned(),
            "file:///suite/envs/e/./own/".replace("/./", "/"),
            "file:///suite/envs/shared/".to_owned(),
            format!("file://{home}/near/"),
            format!("file://{home}/mine/"),
            "file:///abs/a%20b/".to_owned(),
        ]
    );
}

#[test]
fn variables_in_addresses_are_expanded() {
    let lab = SettingsFixture::new(&[(
        "home/.condarc",
        "channel_alias: https://${USER_T}:$TOKEN@a.example/$NONE\nchannels: ['https://b.example/t/$TOKEN/c']\n",
    )]);
    let settings = lab.read(&[("TOKEN", "s3"), ("USER_T", "me")], None).unwrap();
    assert_eq!(settings.alias.as_deref(), Some("https://me:s3@a.example/$NONE"));
    assert_eq!(settings.channels, ["https://b.example/t/s3/c"]);
}

#[test]
fn the_settings_channel_priority_and_offline_are_read_from_condas_configuration() {
    assert_eq!(user("channel_priority: disabled\n").priority, Priority::Disabled);
    assert_eq!(user("channel_priority: false\n").priority, Priority::Disabled);
    let flexible = user("channel_priority: flexible\n");
    assert_eq!((flexible.priority, flexible.warnings.len()), (Priority::Strict, 1));
    assert!(user("offline: yes\n").offline && user("offline: true\n").offline && !user("offline: 'off'\n").offline);
    let lab = SettingsFixture::new(&[("home/.condarc", "offline: true\n")]);
    assert!(!lab.read(&[("CONDA_OFFLINE", "false")], None).unwrap().offline);
}

#[test]
fn unsupported_settings_are_listed() {
    for (text, words) in [
        ("ssl_verify: false\n", "`ssl_verify: false`"),
        ("ssl_verify: /etc/ca.pem\n", "SSL_CERT_FILE"),
        ("proxy_servers: {https: 'http://p.example'}\n", "HTTPS_PROXY"),
        ("denylist_channels: [main]\n", "denylist_channels"),
        ("channels: #!final\n  - a\n", "#!final"),
    ] {
        let warnings = user(text).warnings;
        assert!(warnings.len() == 1 && warnings[0].contains(words), "{text}: {warnings:?}");
    }
    assert!(user("ssl_verify: <truststore>\nproxy_servers: {}\n").warnings.is_empty());
    let lab = SettingsFixture::new(&[]);
    assert_eq!(lab.read(&[("CONDA_SSL_VERIFY", "false")], None).unwrap().warnings.len(), 1);
}

#[test]
fn an_invalid_condarc_is_an_error_with_its_line() {
    for (text, at, words) in [
        ("offline: true\nchannels: main\n", Some(2), ""),
        ("channels: [a\n", None, ""),
        ("\nchannel_alias: b.example\n", Some(2), "`b.example` is not a URL"),
        ("channel_alias: s3://bucket\n", Some(1), "`s3`"),
        ("channel_priority: some\n", Some(1), "`some`"),
        ("a: 1\noffline: maybe\n", Some(2), "`maybe`"),
    ] {
        let lab = SettingsFixture::new(&[("home/.condarc", text)]);
        let error = lab.read(&[], None).unwrap_err();
        assert_eq!(error.kind, FailureKind::Machine, "{text}");
        assert!(error.message.contains(words) && error.to_string().contains(".condarc"), "{text}: {error}");
        if at.is_some() {
            assert_eq!(line(&error), at, "{text}: {error}");
        }
    }
    let lab = SettingsFixture::new(&[]);
    let error = lab.read(&[("CONDA_OFFLINE", "maybe")], None).unwrap_err();
    assert_eq!(error.kind, FailureKind::Usage);
    let error = lab.read(&[], Some("conda.example")).unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (FailureKind::Usage, "`--channel-alias conda.example` is not a URL")
    );
}

#[test]
fn an_invalid_channel_is_an_error_with_its_line() {
    let settings = CondaSettings::default();
    for (channels, at, words) in [
        (&["conda-forge", "s3://bucket"][..], 4, "`s3`"),
        (&["a b"], 3, "not a channel name"),
        (&["x", "y", "a/../b"], 5, "not a channel name"),
        (&["http://"], 3, ""),
        (&["conda-forge[linux-64]"], 3, "not a channel name"),
        (&["local"], 3, "locally built"),
        (&["nodefaults"], 3, "the only entry"),
    ] {
        let error = located(&settings, channels).unwrap_err();
        assert_eq!((error.kind, line(&error)), (FailureKind::Suite, Some(at)), "{channels:?}: {error}");
        assert!(error.message.contains(words), "{channels:?}: {error}");
    }
    let settings = user("channels: ['a b']\n");
    assert_eq!(located(&settings, &["main"]).unwrap_err().kind, FailureKind::Machine);
}
