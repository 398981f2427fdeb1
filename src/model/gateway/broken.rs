//! Detects a panic in the gateway, so that the harness does not blame an external agent for calls that failed because
//! of a bug in the gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that a panic sets.
#[derive(Debug, Clone, Default)]
pub(super) struct PanicFlag(Arc<AtomicBool>);

impl PanicFlag {
    /// Whether the flag is set, because a panic has dropped a guard.
    pub(super) fn is_told(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a guard. If the guard is dropped by a panic, it sets the flag.
    pub(super) fn watch(&self) -> PanicGuard {
        PanicGuard(self.clone())
    }
}

/// A guard: if a panic drops it, the flag is set.
pub(super) struct PanicGuard(PanicFlag);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.0.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_in_a_task_sets_the_panic_flag_and_a_normal_end_does_not() {
        let broken = PanicFlag::default();
        let run = |ends_well: bool| {
            let watch = broken.watch();
            tokio::spawn(async move {
                let _watch = watch;
                assert!(ends_well, "as it was told");
            })
        };
        run(true).await.unwrap();
        assert!(!broken.is_told());
        run(false).await.unwrap_err();
        assert!(broken.is_told());
    }
}
