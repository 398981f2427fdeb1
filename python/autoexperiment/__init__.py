"""AutoExperiment from Python: masking, runs, results, and agents of your own.

A thin layer over the program ``autoexperiment``, which is in the same wheel. Every function here starts the program and
parses its machine-readable output.

>>> import autoexperiment as ae
>>> print(ae.mask_source("def double(x):\\n    return 2 * x\\n", ["double"]))
def double(x):
    raise NotImplementedError
<BLANKLINE>
"""

from ._agents import (
    AgentError,
    BudgetExceeded,
    Entry,
    Exec,
    Left,
    Model,
    ModelRefused,
    Reply,
    Sandbox,
    SandboxRefused,
    Task,
    TaskExperiment,
    TaskFunction,
    agent,
)
from ._errors import (
    AttemptsLost,
    Error,
    GoldNotReproduced,
    Interrupted,
    MachineError,
    ModelError,
    PlaceError,
    StoreError,
    SuiteError,
    Unfinished,
    UsageError,
)
from ._episodes import EpisodeError, Episodes, EpisodeServer, Step, serve
from ._masking import Masked, mask, mask_source
from ._program import program, version
from ._runs import Report, Run, load, run, score
from ._suite import Function, Paper, Sample, Suite, init, list, samples

__version__ = "0.1.0"

__all__ = [
    "AgentError",
    "AttemptsLost",
    "BudgetExceeded",
    "Entry",
    "EpisodeError",
    "EpisodeServer",
    "Episodes",
    "Error",
    "Exec",
    "Function",
    "GoldNotReproduced",
    "Interrupted",
    "Left",
    "MachineError",
    "Masked",
    "Model",
    "ModelError",
    "ModelRefused",
    "Paper",
    "PlaceError",
    "Reply",
    "Report",
    "Run",
    "Sample",
    "Sandbox",
    "SandboxRefused",
    "Step",
    "StoreError",
    "Suite",
    "SuiteError",
    "Task",
    "TaskExperiment",
    "TaskFunction",
    "Unfinished",
    "UsageError",
    "agent",
    "init",
    "list",
    "load",
    "mask",
    "mask_source",
    "program",
    "run",
    "samples",
    "score",
    "serve",
    "version",
]
