"""Writes benchmarks/RESULTS.md, and the sentence in the README, from the stored measurements."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.precisions import LONGEST
from benchmarks.precisions import summary as summary_of

RESULTS = Path(__file__).parent / "results"
PAGE, README = Path(__file__).parent / "RESULTS.md", Path(__file__).parents[1] / "README.md"
EARLIER = {
    "before-kernels-cpu": "kernels on CUDA",
    "before-rows-cpu": "tasks beyond pair tables",
}
BLOCK = re.compile(r"(<!-- speed: written by benchmarks/page.py -->\n).*?(<!-- end of speed -->)", re.DOTALL)


def record(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def made_by(found: dict[str, Any]) -> str:
    """Where a measurement comes from."""
    origin = found["provenance"]
    device = origin.get("device") or origin["accelerator"]
    return f"Commit `{origin['commit']}`, {device}, torch {origin['torch']}, Python {origin['python']}."


def table(columns: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (columns, ["---"] * len(columns), *rows)]


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def training(device: str) -> list[str]:
    found = record(f"training-{device}")
    measured = found["measured"]
    rows = [
        [row["title"], number(row["training"]), number(row["measured"]), f"{row['measured_ratio']:.2f}"]
        for row in measured["rows"]
    ]
    lines = table(["contestant", "training", "with measuring", "ratio to naive, with measuring"], rows)
    limits = measured["ceilings"]
    if limits:
        best = max(row["training"] for row in measured["rows"] if "tf32" in row["title"])
        floor = limits["tf32 floor, run-steps/s"]
        lines += [
            "",
            f"Ceilings of the same run: copy {limits['copy TB/s']:.2f} TB/s, batched products "
            f"{limits['tf32 TFLOP/s']:.0f} (TF32) and {limits['bf16 TFLOP/s']:.0f} TFLOP/s "
            f"(bfloat16); with 90 MB of traffic and 2.2 GFLOP a step, "
            f"at most {floor:,.0f} run-steps/s in TF32. Training alone reaches {best / floor:.0%} of it.",
        ]
    lines += [f"- not timed: {title}: {why}" for title, why in measured["failed"].items()]
    return [*lines, "", f"Medians of {measured['rounds']} interleaved rounds. {made_by(found)}"]


def measures(device: str) -> list[str]:
    found = record(f"measures-{device}")
    rows = [
        [row["what"], f"{row['ms_per_run']:.3f}", f"{row['training_steps']:.2f}"] for row in found["measured"]["rows"]
    ]
    measured = found["measured"]
    kind = f"{measured['runs']} run{'s' if measured['runs'] > 1 else ''} in a stack, {measured['precision']}"
    lines = table(["what", "ms a run", "training steps"], rows)
    return [*lines, "", f"{kind}; medians of {measured['rounds']} rounds. {made_by(found)}"]


def grokking() -> list[str]:
    found = record("grokking-cuda")
    measured = found["measured"]
    rows = []
    for name, arm in measured["summary"].items():
        groks, ratio = arm["grokked"], arm.get("median_grok_ratio")
        interval = f"{ratio['ratio']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]" if ratio else "–"
        steps = [number(groks["median"]), f"{groks['min']:,} – {groks['max']:,}"]
        rows.append([name, f"{arm['grokked_runs']} of {arm['runs']}", *steps, interval])
    titles = ["arm", "grokked", "median step", "range", "ratio of medians to float32's, 90 % interval"]
    lines = table(titles, rows)
    return [*lines, "", made_by(found)]


def precisions() -> list[str]:
    """Every precision against the float32 reference, over many seeds at a weight decay at which runs grok soon."""
    found = record("precisions-cuda")
    measured = found["measured"]
    rows = [
        [
            arm,
            f"{own['runs'] - own['not_grokked']} of {own['runs']}",
            f"{own['ratio']:.3f} [{own['low']:.3f}, {own['high']:.3f}]",
            "yes" if own["equal"] else "no",
        ]
        for arm, own in summary_of(measured).items()
    ]
    titles = ["arm", "grokked", "ratio of geometric means, 95 % interval", "inside [0.95, 1.05]"]
    note = (
        f"λ = {measured['weight_decay']:g}, {measured['steps']:,} steps. The reference is the compiled step, the "
        f"others are kernels. A run that has not grokked counts with every step up to {LONGEST} times the budget: the "
        f"interval holds for all of them, the ratio is that of the earliest. {made_by(found)}"
    )
    return [*table(titles, rows), "", note]


def commits() -> list[str]:
    """The processor time of an earlier commit over that of a later one, kind of step by kind of step."""
    rows = []
    for name, change in EARLIER.items():
        measured = record(name)["measured"]
        for how in ("eager", "compiled"):
            for kind, found in measured[how].items():
                ratio = f"{found['ratio']:.2f} [{found['least']:.2f}, {found['most']:.2f}]"
                rows.append([change, f"`{measured['earlier']}` → `{measured['later']}`", f"{how} {kind}", ratio])
    found = record(next(iter(EARLIER)))
    device = found["provenance"]["device"]
    note = f"Medians of {found['measured']['rounds']} interleaved rounds, and the least and the most. {device}."
    return [*table(["before", "commits", "what", "earlier time / later"], rows), "", note]


def page() -> str:
    """The whole page."""
    lines = [
        "# Measured speed",
        "",
        "Written by `python -m benchmarks.page` from `benchmarks/results`; `make bench` measures again. Throughput is",
        "in run-steps per second of the whole machine: optimiser steps of the paper's p = 97 model at batch 512, data",
        "gathering, loss, backward pass and AdamW included. *With measuring* adds train and validation accuracy and",
        "loss, norm, block-0 FSD and what else an evaluation holds, over all 9,409 pairs, every 100 steps.",
        "",
        "## Training on a GPU",
        "",
        *training("cuda"),
        "",
        "## Training on a CPU",
        "",
        *training("cpu"),
        "",
        "## What an evaluation costs",
        "",
        "On a GPU:",
        "",
        *measures("cuda"),
        "",
        "On a CPU:",
        "",
        *measures("cpu"),
        "",
        "## Is one run on a CPU as fast as it was?",
        "",
        *commits(),
        "",
        "## Do faster precisions grok alike?",
        "",
        *grokking(),
        "",
        *precisions(),
        "",
    ]
    return "\n".join(lines)


def summary() -> str:
    """The README's sentence: on each machine, our fastest in float32 against naive PyTorch and the fastest other."""
    sentences = [_compared(device, named) for device, named in (("cuda", "an H200"), ("cpu", "two cores"))]
    return " ".join(sentences) + " [All implementations, and what an evaluation costs](benchmarks/RESULTS.md).\n"


def _compared(device: str, named: str) -> str:
    rows = [row for row in record(f"training-{device}")["measured"]["rows"] if "reference" not in row["title"]]
    ours = _fastest(row for row in rows if row["title"].startswith("grokscope float32"))
    other = _fastest(row for row in rows if not row["title"].startswith("grokscope"))
    return (
        f"On {named}: {number(ours['measured'])} run-steps/s in float32 with evaluation, "
        f"{ours['measured_ratio']:.1f} times naive PyTorch; the fastest other, {other['title']}, has "
        f"{number(other['measured'])}."
    )


def _fastest(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return max(rows, key=lambda row: row["measured"])


def with_summary(readme: str) -> str:
    return BLOCK.sub(lambda match: match[1] + summary() + match[2], readme)


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    README.write_text(with_summary(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
