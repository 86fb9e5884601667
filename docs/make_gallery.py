"""Executes the scripts in examples/, stores what they printed and logged, and writes docs/gallery.md.

`python docs/make_gallery.py` writes the page and the thumbnails from what is stored; with `--run`, or `--run NAME …`,
it executes the scripts first (`pip install -e '.[interop]'`).
"""

import argparse
import ast
import json
import sys
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path
from typing import Any

from grokscope.files import write_json
from grokscope.runs.provenance import provenance
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.charts.files import pictures_of
from grokscope.view.render import write_files

ROOT = Path(__file__).parents[1]
EXAMPLES, DOCS = ROOT / "examples", ROOT / "docs"
PAGE, STORED, PICTURES = DOCS / "gallery.md", DOCS / "gallery.json", DOCS / "images" / "gallery"
# What the page shows, in its order: scripts that this file executes, and what is executed elsewhere, with its picture.
SCRIPTS = (
    "plain_loop",
    "lightning_module",
    "hugging_face_gpt2",
    "torchmetrics_fsd",
    "transformer_lens_model",
    "nnsight_site",
)
ELSEWHERE = {
    "first_look.ipynb": (
        "A notebook: train, compare with a null, fork",
        "images/gallery/first_look.png",
        "first-look.md",
    ),
    "nanda.py": ("The model of Nanda et al. in plain PyTorch", "../results/nanda/nanda.svg", "studies/nanda.md"),
    "own_study/study.py": (
        "A study of your own: runs, quantities, a claim, a page",
        "images/gallery/own_study.svg",
        "how-to/your-own-study.md",
    ),
}
LONG = {  # not executed for the page, and no picture
    "steered_models.py": "how-to/steer.md",
    "steering_development.py": "studies/steering.md",
}
COLUMNS = {  # of a log, and how a thumbnail names and colours them
    "train_accuracy": ("train accuracy", "train"),
    "validation_accuracy": ("validation accuracy", "validation"),
    "accuracy": ("accuracy", "accuracy"),
    "fsd": ("FSD", "fsd"),
}


def execute(name: str) -> dict[str, Any]:
    """Run a script's `main`; what it printed, and its monitor's log or the numbers it returned."""
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    printed = StringIO()
    with redirect_stdout(printed):
        found = module.main()
    log = [] if isinstance(found, tuple) else [{k: row[k] for k in ("step", *COLUMNS) if k in row} for row in found.log]
    numbers = list(found) if isinstance(found, tuple) else []
    made = {key: value for key, value in provenance("cpu").items() if key in ("torch", "python", "commit")}
    return {"output": printed.getvalue(), "log": log, "numbers": numbers, "provenance": made}


def thumbnail(name: str, stored: Mapping[str, Any]) -> Figure:
    """Accuracies and FSD over training; of a script that trains nothing, its numbers."""
    log: Sequence[Mapping[str, float]] = stored["log"]
    if not log:
        bars = Series("FSD", "bars", "fsd", "run", (0, 1), tuple(stored["numbers"]))
        ticks = ((0, "by the metric"), (1, "by the monitor"))
        return Figure(name, "", "", (Panel("", "", "FSD", (bars,), ticks),), panel_size=(3.3, 1.9))
    steps = tuple(row["step"] for row in log)
    shown = [column for column in COLUMNS if column in log[0]]
    shown = [column for column in shown if column != "accuracy" or "train_accuracy" not in shown]
    series = tuple(
        Series(*COLUMNS[column][:1], "line", COLUMNS[column][1], "run", steps, tuple(row[column] for row in log))
        for column in shown
    )
    return Figure(name, "", "", (Panel("", "step", "", series, y_range=(0, 1.02)),), panel_size=(3.3, 1.9))


def first_picture() -> bytes:
    """The first picture that the notebook drew."""
    cells = json.loads((EXAMPLES / "first_look.ipynb").read_text(encoding="utf-8"))["cells"]
    outputs = [output["data"] for cell in cells for output in cell.get("outputs", ()) if "data" in output]
    return b64decode("".join(next(data["image/png"] for data in outputs if "image/png" in data)))


def first_line(name: str) -> str:
    """What a script is about, from its docstring."""
    text = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].rstrip(".")


def page(stored: Mapping[str, Mapping[str, Any]]) -> str:
    """The whole page."""
    lines = [
        "# Gallery",
        "",
        "The examples in `examples/`, with what each printed when it was executed and a picture of it. Your numbers",
        "differ a little, because each processor rounds in its own way. `docs/make_gallery.py` writes this page.",
        "",
        "| example | what it shows | picture |",
        "|---|---|---|",
    ]
    for file, (title, picture, target) in ELSEWHERE.items():
        lines.append(f"| [{file}]({target}) | {title} | ![{title}]({picture}) |")
    for name in SCRIPTS:
        title = first_line(name)
        lines.append(f"| [{name}.py](#{name.replace('_', '-')}) | {title} | ![{title}](images/gallery/{name}.svg) |")
    long = [f"[{file}](../examples/{file}): {first_line(Path(file).stem)} ([more]({LONG[file]}))." for file in LONG]
    lines += ["", "Not executed for this page, because they take a quarter of an hour:", "", *(f"- {one}" for one in long)]
    for name in SCRIPTS:
        made = stored[name]["provenance"]
        lines += [
            "",
            f"## {name.replace('_', ' ').capitalize()}",
            "",
            f"{first_line(name)} ([{name}.py](../examples/{name}.py)).",
            "",
            f"```{{literalinclude}} ../examples/{name}.py",
            ":language: python",
            ":pyobject: main",
            "```",
            "",
            f"It printed, with torch {made['torch']} on a CPU:",
            "",
            f"```text\n{stored[name]['output'].rstrip()}\n```",
        ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Execute what is asked for; write the page and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", nargs="*", choices=SCRIPTS, metavar="NAME", help="execute these scripts, or all")
    chosen = parser.parse_args()
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    if chosen.run is not None:
        for name in chosen.run or SCRIPTS:
            stored[name] = execute(name)
            print(f"executed {name}", file=sys.stderr)
        write_json(STORED, stored)
    write_files(PICTURES, "first_look", {"png": first_picture()})
    for name in SCRIPTS:
        write_files(PICTURES, name, pictures_of(thumbnail(name, stored[name]), ["svg"]))
    PAGE.write_text(page(stored), encoding="utf-8")


if __name__ == "__main__":
    main()
