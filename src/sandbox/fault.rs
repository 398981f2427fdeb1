//! Why a sandbox could not do what it was asked, and whose doing it is that one is gone.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a sandbox could not do what was asked.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The sandbox is gone or does not answer. Never shown to the model.
    Lost(Loss),
    /// The path or command is at fault: an observation for whoever asked.
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
    /// A sandbox that is gone.
    pub fn lost(loss: impl Into<Loss>) -> Self {
        Self::Lost(loss.into())
    }
}

/// Why a sandbox is gone.
#[derive(Debug, Clone)]
pub struct Loss {
    message: String,
    cause: Cause,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// Whose doing the loss of a sandbox is, as far as the harness can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The machine's: a full disk, no memory left, an engine that went away.
    Machine,
    /// Unknown: it died or no longer answered, and nothing about the machine explains it. An attempt that loses its
    /// sandbox this way in every try has most likely killed it.
    Unexplained,
    /// The attempt's: its processes exceeded the sandbox's own memory limit.
    MemoryLimit,
}

impl Loss {
    /// A loss that is the machine's doing.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: Cause::Machine, source: None }
    }

    /// The same with another cause.
    #[must_use]
    pub fn with_cause(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// The same with what a signal explains.
    #[must_use]
    pub fn by_signal(self, signal: i32) -> Self {
        let name = nix::sys::signal::Signal::try_from(signal).map_or_else(|_| signal.to_string(), |it| it.to_string());
        Self { message: format!("{} (signal {name})", self.message), ..self }
    }

    /// Keeps the error below.
    #[must_use]
    pub fn because(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }

    /// Whose doing it is.
    #[must_use]
    pub fn cause(&self) -> Cause {
        self.cause
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.cause == Cause::MemoryLimit {
            f.write_str(" (its processes exceeded its memory limit)")?;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_keeps_the_error_below_it() {
        let io = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let fault = Fault::lost(Loss::new("its init is gone").because(io));
        assert_eq!(fault.to_string(), "sandbox lost: its init is gone");
        assert_eq!(fault.source().unwrap().to_string(), "unexpected end of file");
        assert!(Fault::Refused("no".into()).source().is_none());
    }
}
