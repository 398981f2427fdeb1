"""Reads predictions with SWE-bench's own loader, and their patches with its parser, and prints the findings as JSON."""

import json
import sys
from pathlib import Path

from swebench.harness.utils import get_predictions_from_file
from unidiff import PatchSet

found = {}
for path in sorted(Path(sys.argv[1]).rglob("*.jsonl")):
    predictions = get_predictions_from_file(str(path), "no data set", "test")
    found[path.name] = {
        prediction["instance_id"]: {
            "model": prediction["model_name_or_path"],
            "files": [changed.path for changed in PatchSet(prediction["model_patch"])],
        }
        for prediction in predictions
    }
print(json.dumps(found))
