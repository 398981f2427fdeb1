//! Claims of the work of a shared run, such as an attempt. A claim is a file `<what>.<generation>`, which only one
//! process can create and which names its holder. To take over from a dead holder, a process creates the file of the
//! next generation.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::files::write_once;

/// The claims of a run, as used by one process.
#[derive(Debug)]
pub(super) struct Claims {
    folder: PathBuf,
    holder: String,
}

/// A claim that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Number of times the claim was taken over.
    pub generation: u32,
    /// The holder's name; empty if the file system lost it in a crash.
    pub holder: String,
}

impl Claims {
    /// Opens the claims in this folder on behalf of the process `holder`.
    #[must_use]
    pub fn new(folder: &Path, holder: &str) -> Self {
        Self { folder: folder.to_owned(), holder: holder.to_owned() }
    }

    /// Name of the claim on cleaning up after the dead process `name`. Only the holder of this claim cleans up.
    #[must_use]
    pub fn after(name: &str) -> String {
        format!("of-{name}")
    }

    /// Path of the file of the first claim on `what`. It exists if and only if `what` was ever claimed.
    #[must_use]
    pub fn first(folder: &Path, what: &str) -> PathBuf {
        folder.join(format!("{what}.0"))
    }

    fn path(&self, what: &str, generation: u32) -> PathBuf {
        self.folder.join(format!("{what}.{generation}"))
    }

    /// Tries to make a claim. Returns false if another process has made it.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn take(&self, what: &str, generation: u32) -> io::Result<bool> {
        write_once(&self.path(what, generation), self.holder.as_bytes(), false)
    }

    /// Whether another process has taken over generation `generation` of the claim on `what`.
    #[must_use]
    pub fn is_taken_over(&self, what: &str, generation: u32) -> bool {
        self.path(what, generation + 1).exists()
    }

    /// Returns the latest claim on `what`; `None` if there is none. The search begins with `generation`.
    ///
    /// # Errors
    /// If a claim cannot be read.
    pub fn last(&self, what: &str, generation: u32) -> io::Result<Option<Claim>> {
        let mut last = None;
        for generation in generation.. {
            match std::fs::read_to_string(self.path(what, generation)) {
                Ok(holder) => last = Some(Claim { generation, holder }),
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            }
        }
        Ok(last)
    }

    /// Returns the last generation of every claim, by the name of what is claimed.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all(&self) -> io::Result<HashMap<String, u32>> {
        let mut found: HashMap<String, u32> = HashMap::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            if let Some((what, generation)) = name.to_str().and_then(|name| name.rsplit_once('.'))
                && let Ok(generation) = generation.parse::<u32>()
            {
                let last = found.entry(what.to_owned()).or_default();
                *last = generation.max(*last);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_process_can_make_a_claim_and_its_takeover_by_another_process_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["a", "b"].map(|holder| Claims::new(folder.path(), holder));
        assert_eq!(one.last("7", 0).unwrap(), None);
        assert!(one.take("7", 0).unwrap());
        assert!(!other.take("7", 0).unwrap() && !one.take("7", 0).unwrap());
        assert!(!one.is_taken_over("7", 0));
        assert!(other.take("7", 1).unwrap() && other.take("of-x", 0).unwrap());
        assert!(one.is_taken_over("7", 0));
        let last = Claim { generation: 1, holder: "b".to_owned() };
        assert_eq!((one.last("7", 0).unwrap(), one.last("7", 1).unwrap()), (Some(last.clone()), Some(last)));
        assert_eq!(one.all().unwrap(), HashMap::from([("7".to_owned(), 1), ("of-x".to_owned(), 0)]));
    }
}
