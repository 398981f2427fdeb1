#!/usr/bin/env python3
"""A cargo for maturin (`CARGO=tests/support/built_cargo.py maturin build --profile dev`) that builds nothing: it returns
a stripped copy of the program that the tests have built. The tests' dependencies have other features, so a build of the
program alone would build all of them again."""

import json
import os
import subprocess
import sys

REAL = os.environ.get("REAL_CARGO", "cargo")

if "rustc" not in sys.argv[1:]:
    os.execvp(REAL, [REAL, *sys.argv[1:]])
about = json.loads(subprocess.check_output([REAL, "metadata", "--format-version", "1", "--no-deps"]))
package = next(package for package in about["packages"] if package["name"] == "autoexperiment")
target = next(target for target in package["targets"] if "bin" in target["kind"])
folder = os.path.join(about["target_directory"], "tmp", "stripped")
os.makedirs(folder, exist_ok=True)
program = os.path.join(folder, target["name"])
subprocess.check_call(["strip", "-o", program, os.path.join(about["target_directory"], "debug", target["name"])])
profile = {"opt_level": "0", "debuginfo": 0, "debug_assertions": True, "overflow_checks": True, "test": False}
artifact = {"package_id": package["id"], "manifest_path": package["manifest_path"], "target": target, "profile": profile}
artifact |= {"features": [], "filenames": [program], "executable": program, "fresh": True}
print(json.dumps({"reason": "compiler-artifact", **artifact}))
print(json.dumps({"reason": "build-finished", "success": True}))
