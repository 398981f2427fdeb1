//! The agents that come with this program: their manifests and envs, compiled in.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::hex;
use crate::files::write_whole;

/// An agent that comes with this program.
pub(super) struct Builtin {
    pub(super) name: &'static str,
    pub(super) manifest: &'static str,
    environment: &'static str,
    lock: &'static str,
}

macro_rules! builtin {
    ($name:literal) => {
        Builtin {
            name: $name,
            manifest: include_str!(concat!("../../../agents/", $name, "/agent.toml")),
            environment: include_str!(concat!("../../../agents/", $name, "/environment.yml")),
            lock: include_str!(concat!("../../../agents/", $name, "/venv.lock")),
        }
    };
}

pub(super) const ALL: [Builtin; 2] = [builtin!("mini-swe-agent"), builtin!("gptme")];

impl Builtin {
    /// The folder with its env's files, in the cache, named by what is in them.
    pub(super) fn unpack(&self, cache: &Path) -> Result<PathBuf> {
        let digest = hex(&Sha256::digest(format!("{}\0{}", self.environment, self.lock)));
        let folder = cache.join("agents").join(&digest[..16]).join(self.name);
        std::fs::create_dir_all(&folder).map_err(|error| Error::io("write", &folder, error))?;
        for (name, text) in [("environment.yml", self.environment), ("venv.lock", self.lock)] {
            let path = folder.join(name);
            if std::fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
                continue;
            }
            // Another process may be reading it.
            write_whole(&path, text.as_bytes())?;
        }
        Ok(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::super::External;
    use super::*;

    #[test]
    fn every_builtin_manifest_is_read_in_all_its_modes_and_its_env_is_unpacked_once() {
        let open = |spec: &str| External::open(&spec.parse().unwrap()).unwrap();
        let cache = tempfile::tempdir().unwrap();
        for builtin in &ALL {
            open(builtin.name);
            let folder = builtin.unpack(cache.path()).unwrap();
            assert_eq!(folder, builtin.unpack(cache.path()).unwrap());
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        }
        open("mini-swe-agent,mode=text");
        open("gptme,mode=openai");
    }
}
