"""Draws the pictures of docs/concepts.md from stored records, and writes its sentences with numbers, and the README's.

`python docs/make_concepts.py`: run it when records were added.
"""

from collections.abc import Sequence
from math import nan
from pathlib import Path

import numpy as np

from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.stats import median_time
from grokscope.studies import Evidence, find_study
from grokscope.studies.sources import read_evidence
from grokscope.tasks import named_task
from grokscope.timeline.dips import dips_after
from grokscope.view.charts.figure import Ends, Figure, Panel, Series
from grokscope.view.charts.files import figure_csv, pictures_of
from grokscope.view.numbers import format_number
from grokscope.view.render import write_files

ROOT = Path(__file__).parents[1]
DOCS, README = ROOT / "docs", ROOT / "README.md"
PAGE, QUESTIONS, PICTURES = DOCS / "concepts.md", DOCS / "faq.md", DOCS / "images" / "concepts"
STUDY = "synchronization"
RUN = "add_mod97_s42"  # the run that the paper shows
EXAMPLE = "add_mod97"  # of the README's words
TASKS = ("add_mod53", "add_mod71", "add_mod97", "add_mod113", "add_mod131")
ENDS = (5, 95)  # percentiles of a band that holds 90 % of the networks
READING = ReadingSpec()
EVENTS = ("memorized", "grokked")
MARKED = {"memorised": "theory", "grokked": "grokked", "synchronised": "random"}  # colours of events


def base_runs(evidence: Evidence) -> dict[str, list[RunRecord]]:
    """The runs of each addition task, at their default settings."""
    records = evidence.experiment("base").values()
    return {task: [one for one in records if one.spec.task == task] for task in TASKS}


def untrained(runs: Sequence[RunRecord]) -> tuple[float, float, float]:
    """FSD before the first step: the median and the ends of 90 % of the networks."""
    low, middle, high = np.percentile([one.at(0, "fsd") for one in runs], (ENDS[0], 50, ENDS[1]))
    return float(middle), float(low), float(high)


def grokked(runs: Sequence[RunRecord]) -> tuple[float, float, float]:
    """The same at the step of grokking, of those that grokked."""
    values = [one.at(step, "fsd") for one in runs if (step := one.timeline.grokked) is not None]
    low, middle, high = np.percentile(values, (ENDS[0], 50, ENDS[1]))
    return float(middle), float(low), float(high)


def one_run(evidence: Evidence) -> Figure:
    """Accuracies, FSD, rank and norm of one run, with its events."""
    run, others = evidence.experiment("base")[RUN], base_runs(evidence)["add_mod97"]
    log, events = run.evaluations, run.timeline
    steps = tuple(log["step"])[1:]  # from the first step on, as the axis is logarithmic
    _, low, high = untrained(others)
    marks = {"memorised": events.memorized, "grokked": events.grokked, "synchronised": events.sync.step}
    verticals = tuple(
        Series(f"{name} at {step:,}", "vertical", MARKED[name], "run", (step,))
        for name, step in marks.items()
        if step is not None
    )

    def line(label: str, column: str, role: str) -> Series:
        return Series(label, "line", role, "run", steps, tuple(log[column])[1:])

    ends = (steps[0], steps[-1])
    null = Series("FSD of untrained networks, 90 %", "band", "null", "null", ends, (), (low, low), (high, high))
    threshold = Series("threshold", "horizontal", "theory", "paper", (), (READING.fsd_sync,))
    accuracies = (
        line("train accuracy", "train_accuracy", "train"),
        line("validation accuracy", "validation_accuracy", "validation"),
    )
    fsd = (null, threshold, line("FSD", "fsd", "fsd"), line("answer share", "answer_share", "excluded"))

    def panel(title: str, y_label: str, *drawn: Series, y_range: Ends | None = None) -> Panel:
        across = (steps[0], steps[-1])
        return Panel(title, "step", y_label, (*drawn, *verticals), log_x=True, x_range=across, y_range=y_range)

    panels = (
        panel("It memorises, and groks much later", "accuracy", *accuracies, y_range=(0, 1.02)),
        panel("Neurons agree on one frequency", "FSD, answer share", *fsd, y_range=(0, 1.02)),
        panel("Neurons need fewer frequencies", "median Fourier rank", line("Fourier rank", "rank", "rank")),
        panel("Weight decay shrinks the weights", "‖W‖", line("weight norm", "norm", "phase")),
    )
    return Figure(
        "one-run", "", f"One run: addition mod 97, seed 42, λ = {run.spec.training.weight_decay:g}", panels, columns=2
    )


def before_and_after(evidence: Evidence) -> Figure:
    """FSD of untrained networks, and of the same networks when they grok, by prime."""
    runs = base_runs(evidence)
    places = tuple(range(len(TASKS)))
    series = []
    for label, role, source, pick in (
        ("untrained (step 0)", "null", "null", untrained),
        ("the same networks, when they grok", "fsd", "run", grokked),
    ):
        middle, low, high = zip(*(pick(runs[task]) for task in TASKS), strict=True)
        shift = -0.12 if pick is untrained else 0.12
        series.append(Series(label, "points", role, source, tuple(x + shift for x in places), middle, low, high))
    threshold = Series("threshold", "horizontal", "theory", "paper", (), (READING.fsd_sync,))
    ticks = tuple(zip(places, (task.removeprefix("add_mod") for task in TASKS), strict=True))
    panel = Panel("Median and 90 % of the networks", "prime p", "FSD", (*series, threshold), ticks, y_range=(0, 1))
    count = len(runs[TASKS[0]])
    title = f"FSD before training and at grokking, {count} networks for each prime"
    return Figure("untrained", "", title, (panel,), panel_size=(5.0, 2.4))


def first_or_not(evidence: Evidence) -> Figure:
    """The share of runs in which FSD crosses before grokking, beside what chance gives."""
    table = find_study(STUDY).items["sup-lead-share"].build(evidence)
    cells = [(table.cell(task, "Positive lead"), table.cell(task, "Positive if paired at random")) for task in TASKS]
    places = tuple(range(len(TASKS)))
    ends = [cell.interval or (nan, nan) for cell, _ in cells]
    shares = Series(
        "FSD crosses before grokking, 95 % interval",
        "points",
        "fsd",
        "run",
        tuple(x - 0.12 for x in places),
        tuple(cell.ours for cell, _ in cells),
        tuple(low for low, _ in ends),
        tuple(high for _, high in ends),
    )
    chance = Series(
        "the same if crossings are paired with the grokking of other runs",
        "points",
        "random",
        "null",
        tuple(x + 0.12 for x in places),
        tuple(cell.ours for _, cell in cells),
    )
    ticks = tuple(zip(places, (task.removeprefix("add_mod") for task in TASKS), strict=True))
    panel = Panel(
        "Leads, and leads by chance", "prime p", "share of grokked runs", (shares, chance), ticks, y_range=(0, 1)
    )
    return Figure(
        "leads", "", "How often FSD comes first, and how often it would by chance", (panel,), panel_size=(5.0, 2.4)
    )


FIGURES = (one_run, before_and_after, first_or_not)


GLOSSARY = """\
- **Grokking**: validation accuracy reaches {grokked:g} long after train accuracy has reached {memorized:g} (*memorised*).
  An *evaluation* measures a run on all pairs at one step; an event has the step of the first evaluation that shows it.
- **FSD** (Frequency Synchronization Degree): the share of neurons whose strongest frequency is the same, less
  what chance gives, in the MLP of block 0, the first one. A run *synchronises* when FSD reaches {sync:.2f} (on a group,
  FSD_gen over irreducible representations, irreps: {gen:.2f}). The *answer share* is how much of these activations' variance depends on the answer.
- **Lead**: steps from synchronising to grokking, negative where grokking comes first. **Null**: what to expect without
  the effect. Of {count} untrained networks of addition mod {prime} with {neurons} neurons, for example, 90 % have an FSD
  between {low:.2f} and {high:.2f}; smaller networks and other primes have
  [other bands](docs/concepts.md#what-untrained-networks-show).
- **λ** is weight decay. A **fork** continues a copy of a run with another λ; **Δt** is the steps from fork to grokking.
"""


def glossary_block(evidence: Evidence) -> str:
    """The words that the README uses, in four entries."""
    runs = base_runs(evidence)[EXAMPLE]
    _, low, high = untrained(runs)
    spec = runs[0].spec
    levels = {"sync": READING.fsd_sync, "gen": READING.fsd_gen_sync, "low": low, "high": high}
    levels |= {"count": len(runs), "prime": EXAMPLE.removeprefix("add_mod"), "neurons": spec.architecture.mlp_width}
    return GLOSSARY.format(grokked=READING.grokked, memorized=READING.memorized, **levels)


def untrained_block(evidence: Evidence) -> str:
    """The table of untrained networks by prime."""
    runs = base_runs(evidence)
    lines = [
        "| task | frequencies | networks | FSD untrained, median [5 %, 95 %] | FSD at grokking, median [5 %, 95 %] |",
        "|---|---|---|---|---|",
    ]
    for task, records in runs.items():
        before, after = (
            f"{mid:.2f} [{low:.2f}, {high:.2f}]" for mid, low, high in (untrained(records), grokked(records))
        )
        frequencies = len(named_task(task).basis().modes)
        lines.append(f"| {task} | {frequencies} | {len(records)} | {before} | {after} |")
    return "\n".join([*lines, ""])


def steps_block(evidence: Evidence) -> str:
    """When the runs of each task memorise and grok, and how many fall below one half afterwards."""
    columns = (
        "task",
        "runs",
        "grokked",
        "memorised at",
        "grokked at (first to last)",
        "with a dip below one half later",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    records = evidence.experiment("base").values()
    for task in dict.fromkeys(one.spec.task for one in records):
        runs = [one for one in records if one.spec.task == task]
        steps = sorted(one.timeline.grokked for one in runs if one.timeline.grokked is not None)
        memorized, middle = (median_time(getattr(one.timeline, event) for one in runs) for event in EVENTS)
        cells = (
            task,
            str(len(runs)),
            str(len(steps)),
            format_number(memorized),
            f"{format_number(middle)} ({steps[0]:,} to {steps[-1]:,})",
            f"{sum(_dips(one) > 0 for one in runs)} of {len(steps)}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _dips(run: RunRecord) -> int:
    """How often a run fell below one half after it had grokked."""
    steps = [int(step) for step in run.evaluations["step"]]
    return dips_after(run.timeline.grokked, steps, run.evaluations["validation_accuracy"]).count


def run_block(evidence: Evidence) -> str:
    """What happened in the run of the picture."""
    run = evidence.experiment("base")[RUN]
    events = run.timeline
    assert events.grokked is not None
    assert events.sync.step is not None
    share = run.at(events.sync.step, "answer_share")
    lead = events.grokked - events.sync.step
    order = "before" if lead > 0 else "after"
    return (
        f"This run memorises at step {events.memorized:,} and groks at step {events.grokked:,}. FSD reaches "
        f"{READING.fsd_sync:.2f} at step {events.sync.step:,}, {order} grokking: its lead is "
        f"{format_number(lead, signed=True)} steps. When it synchronises, {100 * share:.1f} % of the variance of the "
        "neurons that FSD reads depends on the answer.\n"
    )


def blocks(evidence: Evidence) -> dict[Path, dict[str, str]]:
    """The generated parts of each page, by name."""
    page = {"untrained": untrained_block(evidence), "run": run_block(evidence)}
    return {README: {"glossary": glossary_block(evidence)}, PAGE: page, QUESTIONS: {"steps": steps_block(evidence)}}


def placed(text: str, name: str, block: str) -> str:
    """A page with a block between its two marks."""
    start, end = f"<!-- {name}: written by docs/make_concepts.py -->\n", f"<!-- end of {name} -->"
    before, _, rest = text.partition(start)
    return f"{before}{start}{block}{end}{rest.partition(end)[2]}"


def main() -> None:
    """Draw and write everything."""
    evidence = read_evidence(find_study(STUDY), ROOT / "results" / STUDY)
    for build in FIGURES:
        figure = build(evidence)
        write_files(PICTURES, figure.name, pictures_of(figure, ["svg"]) | {"csv": figure_csv(figure)})
    for path, parts in blocks(evidence).items():
        text = path.read_text(encoding="utf-8")
        for name, block in parts.items():
            text = placed(text, name, block)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
