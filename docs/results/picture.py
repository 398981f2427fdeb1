"""Draws docs/primer.svg from the table of pass rates by n in docs/results.md: `python docs/results/picture.py` (matplotlib)."""

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({"svg.hashsalt": "primer", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10})
import matplotlib.pyplot as plt  # noqa: E402

DOCS = Path(__file__).parents[1]
CELL = re.compile(r"([\d.]+) \(([\d.]+) to ([\d.]+)\)")


def main() -> None:
    section = (DOCS / "results.md").read_text().split("### Does the pass rate fall with n?")[1]
    rows = [line for line in section.splitlines() if re.match(r"\| [\d.]+B \|", line)][:2]
    figure, axes = plt.subplots(figsize=(6.2, 2.6))
    for place, (row, marker, colour) in enumerate(zip(rows, "os", ("#0072b2", "#d55e00"))):
        name = row.split("|")[1].strip()
        rates = [tuple(map(float, found.groups())) for found in CELL.finditer(row)]
        assert len(rates) == 3, row
        n = [number + (place - 0.5) * 0.06 for number in (1, 2, 3)]
        spread = [[rate - low for rate, low, _ in rates], [high - rate for rate, _, high in rates]]
        axes.errorbar(n, [rate for rate, *_ in rates], spread, marker=marker, color=colour, capsize=3, label=name)
    axes.set(xlabel="masked functions (n)", ylabel="pass@1, %", xticks=[1, 2, 3], ylim=(0, 75))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(title="Qwen2.5-Coder", frameon=False)
    figure.tight_layout()
    figure.savefig(DOCS / "primer.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
