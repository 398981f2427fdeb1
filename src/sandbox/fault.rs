//! Faults of sandboxes, and the evidence that a lost sandbox is not the attempt's doing.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why a sandbox could not do a job.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The sandbox is gone or does not answer. Never shown to the model.
    Lost(Loss),
    /// The path or command is wrong: an observation for the caller, such as the agent.
    Refused(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(loss) => write!(f, "sandbox lost: {loss}"),
            Self::Refused(reason) => f.write_str(reason),
        }
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lost(loss) => loss.source(),
            Self::Refused(_) => None,
        }
    }
}

impl Fault {
    /// Returns a fault for a sandbox that is gone.
    pub fn lost(loss: impl Into<Loss>) -> Self {
        Self::Lost(loss.into())
    }
}

/// The loss of a sandbox, and its cause.
///
/// The loss counts as the attempt's doing unless there is [`Evidence`] that the machine failed: an attempt controls
/// what runs in its sandbox, so it could otherwise avoid a failure by killing its own sandbox.
#[derive(Debug, Clone)]
pub struct Loss {
    message: String,
    evidence: Option<Evidence>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Loss {
    /// Creates a loss without evidence, which counts as the attempt's doing.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), evidence: None, source: None }
    }

    /// Adds evidence that the machine failed.
    #[must_use]
    pub fn proven(self, evidence: Evidence) -> Self {
        Self { evidence: Some(evidence), ..self }
    }

    /// Adds to the message, in parentheses, a description of how the loss happened.
    #[must_use]
    pub fn noting(self, what: impl fmt::Display) -> Self {
        Self { message: format!("{} ({what})", self.message), ..self }
    }

    /// Sets the underlying error.
    #[must_use]
    pub fn because(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }

    /// The evidence that the machine failed, if there is any.
    #[must_use]
    pub fn evidence(&self) -> Option<&Evidence> {
        self.evidence.as_ref()
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Loss {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as _)
    }
}

impl From<&str> for Loss {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl From<String> for Loss {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

/// Proof that the machine, not the attempt, ended a sandbox or kept it from starting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The kind of observation.
    pub kind: EvidenceKind,
    /// The observation in words, with its figures: "the engine did not answer a new container for 30 s".
    pub detail: String,
}

/// The observations that count as evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// The workspace could not be created, or the sandbox or the agent's program could not be started.
    NotStarted,
    /// The harness's other connection to the container engine broke at the same time as the one to the container.
    EngineGone,
    /// The container engine did not answer a request that had nothing to do with the attempt.
    EngineSilent,
    /// A process outside the sandbox ended or paused the container through the engine, or killed the first process of a
    /// local sandbox. No process inside the sandbox can do either.
    StoppedByOthers,
    /// A fresh, empty sandbox failed after the attempt's own sandbox was gone.
    FreshSandboxFailed,
    /// The kernel killed a process because of a memory limit outside the sandbox, while the sandbox was within the
    /// sandbox's own limit.
    OuterMemoryLimit,
    /// The environment was removed or replaced while the attempt was made.
    EnvGone,
    /// A system call of the harness itself failed, or the harness crashed.
    Harness,
}

impl EvidenceKind {
    /// Returns evidence of this kind.
    #[must_use]
    pub fn because(self, detail: impl Into<String>) -> Evidence {
        Evidence { kind: self, detail: detail.into() }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// The memory limit that a sandbox's processes exceeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutOfMemory {
    /// The sandbox's own limit.
    Own,
    /// A memory limit outside the sandbox. The sandbox's processes were within the sandbox's own limit.
    Outer(Evidence),
}

/// Returns the evidence in an error or in one of its sources.
#[must_use]
pub fn evidence_in(error: &crate::error::Error) -> Option<&Evidence> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        let found = match error.downcast_ref::<Fault>() {
            Some(Fault::Lost(loss)) => loss.evidence(),
            _ => error.downcast_ref::<Loss>().and_then(Loss::evidence),
        };
        if found.is_some() {
            return found;
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_keeps_its_underlying_error() {
        let io = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let fault = Fault::lost(Loss::new("its init is gone").because(io));
        assert_eq!(fault.to_string(), "sandbox lost: its init is gone");
        assert_eq!(fault.source().unwrap().to_string(), "unexpected end of file");
        assert!(Fault::Refused("no".into()).source().is_none());
    }

    #[test]
    fn evidence_of_a_lost_sandbox_is_found_in_an_error_and_in_its_sources() {
        use crate::error::{Error, FailureKind};
        let error = |fault| Error::new(FailureKind::Infrastructure, "no result").because(fault);
        assert_eq!(evidence_in(&error(Fault::lost("it died"))), None);
        assert_eq!(evidence_in(&error(Fault::Refused("no".into()))), None);
        let evidence = EvidenceKind::EngineSilent.because("the engine did not answer a new container for 30 s");
        let proven = error(Fault::Lost(Loss::new("it died").proven(evidence.clone())));
        assert_eq!(evidence_in(&proven), Some(&evidence));
        assert_eq!(evidence_in(&Error::new(FailureKind::Infrastructure, "outer").because(proven)), Some(&evidence));
    }
}
