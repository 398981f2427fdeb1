"""The Python on the documentation's pages runs as it stands. It needs the bundled papers' environment, so it is run where
`AUTOEXPERIMENT_TEST_PAGES` is set."""

import contextlib
import io
import os
import re
import unittest
import tempfile
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Pages(unittest.TestCase):
    def test_every_block_is_python(self) -> None:
        for page in sorted(DOCS.glob("*.md")):
            for block in BLOCK.findall(page.read_text()):
                compile(block, page.name, "exec")

    @unittest.skipUnless(os.environ.get("AUTOEXPERIMENT_TEST_PAGES"), "needs the environment of the bundled papers")
    def test_the_blocks_of_the_tutorial_run_in_an_empty_folder(self) -> None:
        blocks = BLOCK.findall((DOCS / "python.md").read_text())
        self.assertGreater(len(blocks), 1)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for block in blocks:
                    # What a script does only as a program needs a model.
                    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                        exec(compile(block, "python.md", "exec"), {"__name__": "page"})
            finally:
                os.chdir(before)
