//! The kind of sandbox, as named on the command line and in `run.json`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum SandboxKind {
    /// `local`: the best protection that works on this machine without a container engine.
    #[default]
    Local,
    /// `docker`: a container.
    Docker,
    /// `podman`: a container.
    Podman,
    /// `none`: no protection at all.
    Unconfined,
}

impl SandboxKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Local, Self::Docker, Self::Podman, Self::Unconfined];

    /// The name on the command line and in stored files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Unconfined => "none",
        }
    }

    /// Whether sandboxes of this kind are containers.
    #[must_use]
    pub const fn is_container(self) -> bool {
        matches!(self, Self::Docker | Self::Podman)
    }
}

impl FromStr for SandboxKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| format!("unknown sandbox `{text}`: use `local`, `docker`, `podman` or `none`"))
    }
}

impl fmt::Display for SandboxKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

crate::files::stored_as_text!(SandboxKind);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_sandboxes_are_parsed_and_printed_by_name() {
        for kind in SandboxKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
            assert_eq!(serde_json::from_str::<SandboxKind>(&format!("\"{kind}\"")).unwrap(), kind);
        }
        assert!("firecracker".parse::<SandboxKind>().unwrap_err().contains("unknown sandbox `firecracker`"));
    }
}
