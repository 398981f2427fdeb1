//! Records every call of a model, for replays.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;

use super::recording::{self, RecordedCall, RecordedOutcome};
use super::{Model, ModelError, Pieces, QueryFailed, Reply, Request};
use crate::error::{Error, Result};
use crate::files::Appender;

/// A model whose calls are appended to a file.
pub(super) struct Recorder {
    model: Arc<dyn Model>,
    path: PathBuf,
    file: Mutex<Appender>,
    /// The error after which the recording cannot be written any more.
    failed: OnceLock<ModelError>,
}

impl Recorder {
    /// Opens a new or existing recording. A torn last line is removed.
    ///
    /// # Errors
    /// Kind `Machine` if the file cannot be opened; `Usage` if it is not a recording, in which case it is not changed.
    pub(super) fn open(model: Arc<dyn Model>, path: &Path) -> Result<Self> {
        // A device or a pipe has no earlier contents to read.
        let whole = if path.is_file() { recording::read(path, |_| ())? } else { 0 };
        let file = Appender::resume_at(path, whole).map_err(|error| Error::io("open for recording", path, error))?;
        Ok(Self { model, path: path.to_owned(), file: Mutex::new(file), failed: OnceLock::new() })
    }

    fn append(&self, request: &Request, outcome: RecordedOutcome) -> Result<(), ModelError> {
        let model = self.model.provider_name().map(str::to_owned);
        let call = RecordedCall { key: recording::key(request), request: request.clone(), outcome, model };
        self.file.lock().unwrap_or_else(PoisonError::into_inner).append(&call).map_err(|error| {
            let error = ModelError::Denied(format!("failed to write the recording `{}`: {error}", self.path.display()));
            self.failed.get_or_init(|| error).clone()
        })
    }
}

#[async_trait]
impl Model for Recorder {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(self.model.as_ref())
    }

    /// Once a reply could not be recorded, all later calls fail without calling the model, because the caller would pay
    /// for replies that are lost. The call whose reply could not be recorded is still charged.
    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
        self.goes_on()?;
        self.keep(request, self.model.query(request).await)
    }

    async fn stream(&self, request: &Request, pieces: &Pieces) -> Result<Reply, QueryFailed> {
        self.goes_on()?;
        self.keep(request, self.model.stream(request, pieces).await)
    }
}

impl Recorder {
    fn goes_on(&self) -> Result<(), QueryFailed> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone().into()))
    }

    fn keep(&self, request: &Request, answer: Result<Reply, QueryFailed>) -> Result<Reply, QueryFailed> {
        let (outcome, usage, unanswered, cost) = match &answer {
            Ok(reply) => (RecordedOutcome::Reply(Box::new(reply.clone())), reply.usage, reply.unanswered, reply.cost),
            Err(failed) => match failed.error {
                ModelError::ContextLength(_) | ModelError::Refused(_) | ModelError::Rejected(_) => {
                    (RecordedOutcome::Failed(failed.clone()), failed.usage, failed.unanswered, failed.cost)
                }
                // A wrong API key, a network failure or a script without further replies is not part of the
                // conversation, so the error is not recorded.
                ModelError::Denied(_) | ModelError::Unavailable(_) | ModelError::Exhausted(_) => return answer,
            },
        };
        self.append(request, outcome).map_err(|error| QueryFailed { error, usage, unanswered, cost })?;
        answer
    }
}
