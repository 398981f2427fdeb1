//! A run whose attempts are not planned: the clients of a server start them one by one.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{OpenedLedger, Run, location, open_ledger};
use crate::error::{Error, Result};
use crate::run::AttemptRecord;
use crate::run::attempt::RunContext;
use crate::run::event::Observer;
use crate::run::family::{Family, Item};
use crate::run::store::Writer;

/// A prepared run whose attempts are started one by one by the clients of a server.
pub(crate) struct HostedRun {
    /// Shared state of the attempts.
    pub(crate) context: RunContext,
    /// Stores the records.
    pub(crate) writer: Writer,
    /// The family (kind of task) of the samples.
    pub(crate) family: Arc<dyn Family>,
    /// The items that samples are drawn from.
    pub(crate) items: Vec<Arc<dyn Item>>,
    /// Records of earlier sessions.
    pub(crate) records: Vec<AttemptRecord>,
}

impl Run {
    /// Prepares the items and creates or opens the run's folder, without making attempts. At most `verifications`
    /// attempts will be verified at once. Returns `None` if `cancel` is cancelled first.
    ///
    /// # Errors
    /// Same as [`execute`](Self::execute).
    pub(crate) async fn host(
        self,
        verifications: usize,
        observer: &dyn Observer,
        cancel: &CancellationToken,
    ) -> Result<Option<HostedRun>> {
        let items = self.items.clone();
        let Ok(prepared) = Box::pin(self.prepare(observer, cancel)).await? else { return Ok(None) };
        let location::OpenedRun { store, writer, .. } = prepared.opened;
        let mut writer = writer.ok_or_else(|| Error::internal("the run was opened without a writer"))?;
        let opened = open_ledger(&store, prepared.family.as_ref(), &mut writer, &prepared.probed)?;
        let OpenedLedger { records, ledger, .. } = opened;
        let context = RunContext {
            configuration: prepared.configuration,
            machine: prepared.options.machine,
            items: prepared.items,
            agents: prepared.agents,
            model: prepared.model,
            store,
            ledger,
            verifications: Some(Arc::new(Semaphore::new(verifications.max(1)))),
        };
        Ok(Some(HostedRun { context, writer, family: prepared.family, items, records }))
    }
}
