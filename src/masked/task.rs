//! Builds the part of an agent's task that only masked replication has.

use crate::agent::{Replication, TaskExperiment, TaskFunction, TaskRegion};
use crate::suite::{LoadedPaper, Piece};

/// Builds the masked replication part of the task for a sample that masks these functions. `experiments` are all
/// experiments of the paper; the hidden ones are left out.
#[must_use]
pub fn replication(loaded: &LoadedPaper, experiments: &[TaskExperiment], functions: &[usize]) -> Replication {
    Replication {
        paper: loaded.paper.clone(),
        text: loaded.text.clone(),
        experiments: loaded.shown_tests(functions).into_iter().map(|place| experiments[place].clone()).collect(),
        functions: functions.iter().map(|&place| described(loaded, functions, place)).collect(),
        originals: loaded.originals(functions),
    }
}

/// Describes one of the functions and regions that a sample masks, for agents.
#[must_use]
pub fn described(loaded: &LoadedPaper, masked: &[usize], place: usize) -> TaskFunction {
    let unit = &loaded.paper.units[place];
    let region = match loaded.piece(place) {
        Piece::Function(_) => None,
        Piece::Region(region) => {
            let module = loaded.source(place);
            let files = loaded.masked(masked).unwrap_or_default();
            let stand_ins = files.into_iter().find(|file| file.path == module.path()).map(|file| file.stand_ins);
            let stand_in = stand_ins.and_then(|all| all.into_iter().find(|(unit, _)| *unit == place));
            Some(TaskRegion {
                file: module.path().to_owned(),
                function: region.function.map(|index| module.functions()[index].label()),
                lines: loaded.masked_lines(&[place]),
                stand_in: stand_in.map_or(0..0, |(_, range)| range),
                range: region.range.clone(),
            })
        }
    };
    TaskFunction { at: unit.at.clone(), description: unit.description.clone(), passages: unit.passages.clone(), region }
}
