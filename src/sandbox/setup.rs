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
        let SandboxLimits { memory, processes, file_size, disk, cpu_seconds, cpus } = limits;
        let milli_cpus = cpus.map(|cpus| (cpus * 1000.0).round() as u64);
        Self { memory, processes, file_size, disk, cpu_seconds, milli_cpus }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_init_learns_the_limit_of_cpus() {
        let limits = |cpus| InitLimits::from(SandboxLimits { cpus, ..SandboxLimits::default() });
        assert_eq!([Some(0.25), Some(1.5), None].map(|cpus| limits(cpus).milli_cpus), [Some(250), Some(1500), None]);
    }
}
