"""Writes docs/measures.md from the catalogue of measures, with a picture of each measure over one real run.

`python docs/make_measures.py` writes the page; with `--run DIR RUN` it first measures that run at all its checkpoints,
stores the numbers beside the page, and draws the pictures from them.
"""

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

from grokscope.errors import InputError
from grokscope.measures.catalogue import MEASURES
from grokscope.runs import Reading, Run, measure_checkpoints, open_runs
from grokscope.runs.provenance import provenance

DOCS = Path(__file__).parent
DATA, PICTURES = DOCS / "measures.csv", DOCS / "images" / "measures"
SHOWN = {  # what the picture of a measure shows, where that is not its first columns
    "fsd_null": ["p_uniform", "p_exact", "p_gaussian", "p_renamed", "p_untrained"],
    "control": ["control_fsd", "control_mean", "control_max"],
    "ablation": ["drop_attn0_zero", "drop_mlp0_zero", "drop_attn1_zero", "drop_mlp1_zero"],
    "norms": ["norm", "norm_embed", "norm_blocks.0", "norm_blocks.1", "norm_unembed"],
    "patching": ["head0.0", "head0.1", "head0.2", "head0.3", "head1.0", "head1.1", "head1.2", "head1.3"],
    "memorization": ["train_accuracy", "validation_accuracy", "gap"],
    "removal": ["without_mode_train_accuracy", "without_mode_validation_accuracy"],
    "rank": ["rank"],
    "fsd": ["fsd", "answer_share"],
    "fsd_k": ["fsd_2", "fsd_3"],
    "fsd_gen": ["fsd_gen_1", "fsd_gen_2", "fsd_gen_3"],
    "concentration": ["ipr", "gini", "entropy", "embedding_ipr", "embedding_gini", "embedding_entropy"],
    "embedding": ["embedding_peak_share"],
    "logit_map": ["logit_map_fsd"],
    "logits": ["logit_share", "logit_peak_share"],
    "fourier_kan": ["kan_r2", "kan_trained_r2", "kan_agreement"],
    "singular_values": [
        f"effective_rank_{name}"
        for name in ("embed.W_E", "blocks.0.mlp.W_in", "blocks.0.mlp.W_out", "blocks.1.mlp.W_in", "unembed.W_U")
    ],
    "representation": ["representation_entropy", "representation_top_share"],
    "residual": ["residual_entropy", "residual_top_share"],
    "updates": ["update_cosine", "update_decay_cosine"],
    "update_spectrum": ["update_top_share"],
    "attention_updates": ["attention_gap_23"],
    "commutator": ["commutator_defect"],
    "last_block": ["last_fsd", "last_rank"],
    "readings": ["post0.read.answer.fsd_one", "post1.read.answer.fsd_one"],
}


def page() -> str:
    """The whole page; `tests/measures/test_catalogue.py` compares it with the file."""
    about = json.loads((DOCS / "measures.json").read_text())
    made = about["provenance"]
    lines = [
        "# Measures",
        "",
        "Every measure that `grokscope measure` lists, in its order. This page is written by `docs/make_measures.py`",
        f"from the catalogue. The pictures are of one run, `{about['run']}`, which",
        f"{_happened(about['outcome'])}, measured at its checkpoints; the numbers are in",
        f"[measures.csv](measures.csv), computed by commit `{made['commit']}` with torch {made['torch']} on",
        f"{made['device']}. The dotted line is the step of grokking. Definitions and guards that the paper",
        "leaves open are in the [audit](paper-audit.md).",
        "",
    ]
    for name, one in MEASURES.items():
        lines += [f"## `{name}`", "", f"{one.title}.", "", f"    {one.formula}", ""]
        lines += [f"- **source**: {one.source}", f"- **cost**: {one.cost}", f"- **null**: {one.null}"]
        lines += [f"- **undefined** where {one.undefined}", ""]
        lines += ["| column | meaning |", "|---|---|"]
        lines += [f"| `{column}` | {meaning} |" for column, meaning in one.columns.items()]
        lines += ["", f"![{one.title}](images/measures/{name}.svg)", ""] if name in pictured() else [""]
    return "\n".join(lines)


def pictured() -> tuple[str, ...]:
    """Measures of which there are numbers, and so a picture."""
    with DATA.open(newline="") as file:
        known = next(csv.reader(file))
    return tuple(name for name in MEASURES if set(shown(name)) & set(known))


def shown(name: str) -> list[str]:
    """The columns that a picture may have."""
    return SHOWN.get(name, [name, f"{name}_train", f"{name}_validation"])


def _happened(outcome: dict[str, Any] | None) -> str:
    """When a run memorised and grokked, if it did."""
    steps = {word: (outcome or {}).get(key) for word, key in (("memorised", "memorized"), ("grokked", "grokked"))}
    return " and ".join(
        f"{word} at step {step:,}" if step is not None else f"has not {word}" for word, step in steps.items()
    )


def record(run: Run, device: str) -> None:
    """Measure a run at all its checkpoints, and store the numbers."""
    rows = [row for part in measure_checkpoints(run, list(MEASURES), Reading(device=device)) for row in part]
    with DATA.open("w", newline="") as file:
        writer = csv.DictWriter(file, [column for column in rows[0] if column != "run"], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items() if k != "run"})
    about = {
        "run": run.name,
        "spec": run.spec.to_dict(),
        "outcome": run.folder.outcome.to_dict(),
        "provenance": provenance(device),
    }
    (DOCS / "measures.json").write_text(json.dumps(about, indent=1) + "\n")


def drawn() -> None:
    """One picture for each measure, from the stored numbers."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.hashsalt": "grokscope", "font.size": 8, "axes.spines.top": False})
    matplotlib.rcParams.update({"axes.spines.right": False, "svg.fonttype": "none"})
    with DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    steps = [int(row["step"]) for row in rows]
    grokked = (json.loads((DOCS / "measures.json").read_text())["outcome"] or {}).get("grokked")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in pictured():
        figure, axes = pyplot.subplots(figsize=(5, 2.2), layout="constrained")
        for column in shown(name):
            if column in rows[0]:
                axes.plot(steps, [float(row[column]) for row in rows], label=column, linewidth=1.2)
        if grokked is not None:
            axes.axvline(grokked, color="0.5", linestyle=":", linewidth=1)
        if name == "fsd_null":
            axes.axhline(0.05, color="0.7", linewidth=0.8)
        axes.set_xlabel("step")
        axes.legend(frameon=False, fontsize=7, ncols=2)
        figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)


def main() -> None:
    """Measure and draw if a run is named; write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", nargs=2, metavar=("DIR", "RUN"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--draw", action="store_true", help="draw the pictures again from the stored numbers")
    chosen = parser.parse_args()
    try:
        if chosen.run:
            record(open_runs(Path(chosen.run[0]))[chosen.run[1]], chosen.device)
        if chosen.run or chosen.draw:
            drawn()
    except InputError as error:
        sys.exit(str(error))
    (DOCS / "measures.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
