"""Adds the page of all options to the site: what `--help` says of each command, by the program that is there."""

import os
import shutil
import subprocess
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files


def program() -> str:
    """Path of the program: that in `AUTOEXPERIMENT_PROGRAM`, one that was built here, or the installed one."""
    root = Path(__file__).parents[2]
    built = [root / "target" / profile / "autoexperiment" for profile in ("debug", "release")]
    candidates = [os.environ.get("AUTOEXPERIMENT_PROGRAM"), *map(str, built), shutil.which("autoexperiment")]
    for candidate in candidates:
        if candidate and Path(candidate).is_file():
            return candidate
    raise PluginError("the page of options needs the program: run `cargo build` first")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    page = subprocess.run([program(), "man", "--markdown"], check=True, capture_output=True, text=True).stdout
    files.append(File.generated(config, "options.md", content=page))
    return files
