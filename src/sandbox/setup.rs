//! Converts a sandbox's workspace and limits to the form in which they are sent to its init, the first process in it.

use autoexperiment_init::wire::{InitLimits, WorkspaceSource};

use super::SandboxLimits;
use crate::workspace::Layers;

impl From<&Layers> for WorkspaceSource {
    fn from(layers: &Layers) -> Self {
        match layers {
            Layers::Overlay { lower, upper, work, disk } => Self::Overlay {
                lower: lower.into(),
                upper: upper.into(),
                work: work.into(),
                disk: disk.as_ref().map(|disk| (&disk.root).into()),
            },
            Layers::Copy { dir } => Self::Folder(dir.into()),
            Layers::Image { .. } => Self::Image,
        }
    }
}

impl From<SandboxLimits> for InitLimits {
    fn from(limits: SandboxLimits) -> Self {
        let SandboxLimits { memory, processes, file_size, disk, cpu_seconds, cpus: _ } = limits;
        Self { memory, processes, file_size, disk, cpu_seconds }
    }
}
