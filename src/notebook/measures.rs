//! Names and descriptions of the measures in verdicts on notebook tasks, for reports.

use crate::run::family::MeasureFacts;

/// All measures: first this project's own, then those that SUPER published. The last ones (`_floor`) are SUPER's
/// measures of only those cells that ran before the agent began.
pub const MEASURES: [MeasureFacts; 10] = [
    MeasureFacts::share(
        "verified_accuracy",
        "share of the right values that are both in the submission and in our own run of the script",
    ),
    MeasureFacts::share(
        "verified_landmarks",
        "share of the withheld blocks' landmarks that their own checks find in the final state",
    ),
    MeasureFacts::share(
        "verified_execution",
        "script executed: our own run of it gives what was submitted, right or wrong",
    ),
    MeasureFacts::share(
        "verified_replays",
        "the agent's cells, repeated on the original repository, end as before; 0 unless all values are right",
    ),
    MeasureFacts::share("reported_submitted", "a JSON object was submitted"),
    MeasureFacts::share("reported_accuracy", "SUPER's accuracy of the submission, as published"),
    MeasureFacts::share("reported_landmarks", "SUPER's landmarks, as published: found in any output"),
    MeasureFacts::share("reported_script", "SUPER's \"script executed\", as published: named in a cell of ten seconds"),
    MeasureFacts::share(
        "reported_landmarks_floor",
        "the same landmarks in the output of the cells before the agent began",
    ),
    MeasureFacts::share("reported_script_floor", "the same \"script executed\" by the cells before the agent began"),
];
