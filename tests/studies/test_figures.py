"""Figures: what is drawn is the data, the data are the runs', the nulls and the paper's values are there."""

import csv
import io
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import isnan, nan
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from lifelike import lifelike
from matplotlib.figure import Figure as Canvas
from test_claims import evidence as followed

from grokscope.cli import run
from grokscope.measures.nulls import gaussian_null
from grokscope.runs.packing import save_records
from grokscope.runs.records import RunRecord
from grokscope.studies import (
    FIGURES,
    TABLES,
    Evidence,
    evidence_at,
    evidence_of,
    house_style,
    write_figure,
)
from grokscope.studies.claims import CLAIMS
from grokscope.studies.figures import Figure, Panel, Series, figure_csv, pictures_of
from grokscope.studies.figures.reading import independent_null
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.tasks import named_task
from grokscope.view.charts.drawing import draw

NAMES = (
    "fig-exloss",
    "fig-two-phase",
    "fig-wd",
    "fig-memorisation",
    "fig-arch",
    "fig-crossprime",
    "fig-threshold",
    "fig-accelerator",
    "fig-transfer",
)
EMPTY = evidence_of([])
SEEDS = 7  # more than are printed of any study
STUDIES = ("base", "fork", "architecture", "crossprime", "accelerator", "symmetric")
MOST_BYTES = 150_000


@cache
def wide() -> Evidence:
    return lifelike(SEEDS, STUDIES)


@cache
def made(name: str, source: str = "wide") -> Figure:
    return FIGURES[name]({"wide": wide, "followed": lambda: followed(True), "empty": lambda: EMPTY}[source]())


def every(figure: Figure) -> Iterator[tuple[Panel, Series]]:
    return ((panel, one) for panel in figure.panels for one in panel.series)


def labelled(panel: Panel, label: str) -> Series:
    return next(one for one in panel.series if one.label == label)


@pytest.fixture(autouse=True)
def styled() -> Iterator[None]:
    with house_style():
        yield


def test_there_are_nine_and_claims_name_only_what_is_there() -> None:
    assert tuple(FIGURES) == NAMES
    assert {claim.table for claim in CLAIMS} <= {*FIGURES, *TABLES}


# The data are the runs'.


def test_leads_are_drawn_as_printed() -> None:
    panel = made("fig-exloss", "followed").panels[0]
    printed = REPORTED["tab:exloss"]
    names = [name for name in printed.rows if name != "mean"]
    assert labelled(panel, "FSD").y == tuple(printed.get(name, "lead") for name in names)
    assert labelled(panel, "restricted loss").y == tuple(printed.get(name, "restricted_lead") for name in names)
    papers = [one for one in panel.series if one.source == "paper"]
    assert [one.y for one in papers] == [labelled(panel, name).y for name in ("FSD", "restricted loss")]


def test_the_phases_are_those_of_the_timeline() -> None:
    figure, record = made("fig-two-phase"), wide().task("add_mod97")["add_mod97_s42"]
    span = labelled(figure.panels[0], "Phase 2, seed 42")
    assert (span.low, span.high) == ((record.timeline.liberated,), (record.timeline.grokked,))
    rank = labelled(figure.panels[2], "seed 42")
    assert dict(zip(rank.x, rank.y, strict=True)) == {
        step: record.at(int(step), "rank") for step in record.evaluations["step"] if step <= max(rank.x)
    }
    assert [panel.x_label for panel in figure.panels] == ["", "", "", "step"]
    paper = labelled(figure.panels[3], "paper")
    assert dict(zip(paper.x, paper.y, strict=True)) == {
        int(step): REPORTED["tab:rank"].get(step, "norm") for step in REPORTED["tab:rank"].rows
    }
    assert f"{record.timeline.grokked:,}" in figure.title
    assert f"all {SEEDS} seeds" in figure.title


def test_a_rank_that_is_not_1_is_not_called_so() -> None:
    runs = dict(wide().task("add_mod97"))
    own = runs["add_mod97_s42"]
    grok = own.timeline.grokked
    assert grok is not None
    ranks = [20.0 if step <= grok else 3.0 for step in own.evaluations["step"]]
    runs["add_mod97_s42"] = replace(own, evaluations=own.evaluations | {"rank": ranks})
    figure = FIGURES["fig-two-phase"](Evidence({"base": runs}, {}))
    assert f"rank 3 at step {grok + 100:,}" in figure.title
    assert labelled(figure.panels[0], "rank 3, seed 42").x == (grok + 100,)
    assert any("seed 42 has none" in note for note in figure.notes)
    assert not any("has none" in note for note in made("fig-two-phase").notes)


def test_many_seeds_are_a_median_between_quartiles() -> None:
    runs = list(wide().task("add_mod97").values())
    one = next(s for s in made("fig-two-phase").panels[3].series if s.source == "seeds")
    for place in (0, 7, 31):
        values = [record.at(int(one.x[place]), "norm") for record in runs]
        assert (one.low[place], one.y[place], one.high[place]) == pytest.approx(np.percentile(values, [25, 50, 75]))
    assert one.label.endswith(f"{SEEDS} seeds")


def test_waits_and_the_law_are_drawn_as_printed() -> None:
    panel = made("fig-wd", "followed").panels[-1]
    bars = labelled(panel, "Δt, seed 42")
    assert bars.y[:5] == labelled(panel, "Δt, paper").y
    assert isnan(bars.y[5])
    assert bars.texts[5] == "unstable"
    assert labelled(panel, "3,000/λ, our fit to λ ≤ 3").y == pytest.approx(labelled(panel, "3,000/λ, paper").y)


def test_the_share_that_grokked_ends_at_the_share_that_grokked() -> None:
    figure = made("fig-wd")
    for decay in ("1", "5", "10"):
        step = labelled(figure.panels[1], f"λ = {decay}")
        runs = [record for name, record in wide().study("fork").items() if name.endswith(f"_x{decay}")]
        until = [run.timeline.grokked for run in runs]
        assert step.y[-1] == pytest.approx(sum(at is not None and at <= max(step.x) for at in until) / len(runs))
        assert all(low <= y <= high for low, y, high in zip(step.low, step.y, step.high, strict=True))


def test_the_gap_is_train_less_validation() -> None:
    record = wide().task("add_mod97")["add_mod97_s42"]
    gap = labelled(made("fig-memorisation").panels[1], "gap, seed 42")
    for step, value in zip(gap.x, gap.y, strict=True):
        at = [record.at(int(step), f"{name}_accuracy") for name in ("train", "validation")]
        assert value == pytest.approx(at[0] - at[1])


def test_leads_of_architectures_are_drawn_as_printed() -> None:
    panel = made("fig-arch", "followed").panels[0]
    bars = labelled(panel, "seed 42")
    assert bars.y[:3] == (3500, -1000, 3500)
    assert bars.texts[3:] == ("not grokked", "not grokked")
    assert labelled(panel, "paper").y == (1500, -1000, 3000)


def test_the_law_across_primes_is_that_of_the_table() -> None:
    found = followed(True)
    table, panel = TABLES["tab-crossprime"](found), made("fig-crossprime", "followed").panels[0]
    for modulus in ("53", "97", "131"):
        points = labelled(panel, f"p = {modulus}, ours")
        for decay, mean, low, high in zip(points.x, points.y, points.low, points.high, strict=True):
            assert mean == pytest.approx(table.cell(modulus, f"Δt(λ = {decay:g})").ours)
            assert (high - low) / 2 == pytest.approx(table.cell(modulus, f"std(λ = {decay:g})").ours)
        fit = next(one for one in panel.series if one.label.startswith(f"p = {modulus}: C = "))
        assert fit.y[0] == pytest.approx(table.cell(modulus, "C_p").ours)


def test_norms_at_grokking_are_those_of_the_runs() -> None:
    figure, study = made("fig-threshold"), wide().study("crossprime")
    stars = labelled(figure.panels[1], "grokked, seed 42")
    for decay, norm in zip(stars.x, stars.y, strict=True):
        record = study[f"add_mod97_d42_x{decay:g}"]
        assert norm == record.at(record.timeline.grokked or 0, "norm")
    means = next(one for one in figure.panels[1].series if one.source == "seeds")
    ours = next(one for one in figure.panels[1].series if one.label.endswith(", ours"))
    assert ours.y[0] == pytest.approx(np.mean(means.y))


def test_the_rate_is_that_of_an_exponential() -> None:
    rates = labelled(made("fig-threshold", "followed").panels[2], "rate, seed 42")
    assert rates.y == pytest.approx([0.2 * decay for decay in rates.x], rel=1e-6)


def test_bars_count_who_grokked() -> None:
    panel = made("fig-accelerator", "followed").panels[0]
    assert labelled(panel, "at FSD ≥ 0.80").texts == ("3/3", "3/3", "3/3")
    assert labelled(panel, "at memorisation").texts == ("3/3", "3/3", "0/3")
    assert labelled(panel, "at memorisation").y[:2] == (2000, 2400)
    assert isnan(labelled(panel, "at memorisation").y[2])
    band = next(one for one in panel.series if one.source == "paper")
    assert (band.low[0], band.high[0]) == pytest.approx((4000 * 0.57, 4000 * 0.64))


def test_triggers_are_compared_with_fixed_decay_at_their_own_seeds() -> None:
    study = wide().study("accelerator")
    kept = {name: record for name, record in study.items() if name.endswith(("_s42", "_s0", "_s1", "_s2"))}
    others = {name: record for name, record in study.items() if name.startswith("fixed")}
    assert len(others) > 4
    figure = FIGURES["fig-accelerator"](Evidence({"accelerator": kept | others}, {}))
    fixed = next(one for one in figure.panels[1].series if one.label.startswith("fixed"))
    mine = [study[f"fixed_s{seed}"].timeline.grokked for seed in (42, 0, 1, 2)]
    assert fixed.label == "fixed λ = 1 (4/4 grokked)"
    assert fixed.y[0] == np.median([step for step in mine if step is not None])
    steps = [
        (study[f"fsd_x3_s{s}"].timeline.grokked or 0, study[f"fixed_s{s}"].timeline.grokked or 0) for s in (42, 0, 1, 2)
    ]
    saved = 100 * (1 - sum(own for own, _ in steps) / sum(other for _, other in steps))
    assert any(f"fsd_x3 {saved:.0f} % (4)" in note for note in figure.notes)


def test_a_title_names_no_more_seeds_than_the_arms_have() -> None:
    study = wide().study("accelerator")
    few = {name: record for name, record in study.items() if name.endswith(("_s42", "_s0", "_s1"))}
    fixed = {name: record for name, record in study.items() if name.startswith("fixed")}
    assert len(fixed) > 3
    figure = FIGURES["fig-accelerator"](Evidence({"accelerator": few | fixed}, {}))
    assert figure.title.endswith("45 runs, 3 seeds a trigger")
    assert len(figure.panels) == 1
    one_more = next(name for name in study if name.startswith("fsd_x3") and name not in few)
    figure = FIGURES["fig-accelerator"](Evidence({"accelerator": few | fixed | {one_more: study[one_more]}}, {}))
    assert "3 to 4 a trigger" in figure.panels[1].title
    forks = {name: record for name, record in wide().study("fork").items() if "s42" in name or name.endswith("_x1")}
    assert "all seeds, 1 to " in FIGURES["fig-wd"](Evidence({"fork": forks}, {})).title
    draws = {name: r for name, r in wide().study("crossprime").items() if "mod53" in name or "_d42" in name}
    assert " draws a prime" in FIGURES["fig-crossprime"](Evidence({"crossprime": draws}, {})).title
    assert "forks, 1 to " in FIGURES["fig-crossprime"](Evidence({"crossprime": draws}, {})).title


def test_triggers_that_came_too_late_are_told_under_the_figure() -> None:
    study = dict(wide().study("accelerator"))
    for name, fired in (("fsd_x3_s42", 14_000), ("fsd_x3_s0", None), ("fsd_x5_s0", 100)):
        study[name] = replace(study[name], outcome=study[name].outcome | {"trigger": {"fired_at": fired}})
    notes = FIGURES["fig-accelerator"](Evidence({"accelerator": study}, {})).notes
    assert any(note.startswith("λ rose only after grokking, or never, in: fsd_x3 2 of ") for note in notes)


def test_nulls_are_drawn_beside_fsd_gen() -> None:
    figure, study = made("fig-transfer"), wide().study("symmetric")
    assert len(figure.panels) == 9
    runs = [record for name, record in study.items() if name.startswith("S5_f0.7_")]
    untrained = [record.at(0, "fsd") for record in runs]
    for panel in figure.panels[:7]:
        band = next(one for one in panel.series if one.label.startswith("untrained"))
        assert (band.low[0], band.high[0]) == (min(untrained), max(untrained))
        assert labelled(panel, "independent neurons, 95 %").y == (independent_null("S5", 512),)
    assert labelled(figure.panels[2], "paper").x == (2100,)


@pytest.mark.parametrize(("task", "neurons"), [("S5", 32), ("add_mod97", 48)])
def test_the_exact_null_is_the_quantile_of_drawn_noise(task: str, neurons: int) -> None:
    import torch

    dimensions = torch.as_tensor(named_task(task).basis().modes.dimensions, dtype=torch.float64)
    drawn = gaussian_null(dimensions, neurons, resamples=1000).values
    level = independent_null(task, neurons)
    assert float((drawn > level + 1e-9).double().mean()) <= 0.05 + 0.02
    assert float((drawn >= level - 1e-9).double().mean()) >= 0.05 - 0.02


# What is missing.


@pytest.mark.parametrize("name", NAMES)
def test_without_runs_a_figure_says_so_and_shows_the_paper_alone(name: str) -> None:
    figure = made(name, "empty")
    assert figure.name == name
    assert not any(panel.has_runs for panel in figure.panels)
    assert {one.source for _, one in every(figure) if len(one)} <= {"paper", "fit"}
    assert any(note.startswith("Not trained, so left empty") for note in figure.notes)


def test_an_empty_panel_is_drawn_with_the_words_no_runs() -> None:
    canvas = draw(made("fig-wd", "empty"))
    assert [[text.get_text() for text in axes.texts] for axes in canvas.axes] == [["no runs"]] * 2


def test_one_run_alone_makes_every_figure() -> None:
    for study, runs in wide().records.items():
        first = next(iter(runs))
        found = Evidence({study: {first: runs[first]}}, {})
        assert all(FIGURES[name](found).panels for name in NAMES)


def test_what_was_not_measured_is_said_in_the_bar() -> None:
    base = {name: replace(record, checkpoints={}) for name, record in wide().study("base").items()}
    panel = FIGURES["fig-exloss"](Evidence({"base": base}, {})).panels[0]
    assert labelled(panel, "restricted loss").texts == ("not measured",) * 9


def test_series_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(ValueError, match="equally long"):
        Series("a", "line", "fsd", "run", (1, 2), (1,))
    with pytest.raises(ValueError, match="a series of kind band needs low"):
        Series("a", "band", "fsd", "run", (1, 2))


# What is drawn is the data, and can be read.


@pytest.mark.parametrize("name", NAMES)
def test_lines_hold_the_numbers_of_the_csv(name: str) -> None:
    figure = made(name)
    rows = list(csv.DictReader(io.StringIO(figure_csv(figure).decode(), newline="")))
    assert len(rows) == sum(len(one) for _, one in every(figure))
    place = 0
    for panel, one in every(figure):
        for i in range(len(one)):
            row = rows[place]
            assert (row["panel"], row["series"]) == (panel.title, one.label)
            for column in ("x", "y", "low", "high"):
                values = one.columns[column]
                value = float(values[i]) if values else nan
                assert float(row[column] or "nan") == pytest.approx(value, nan_ok=True)
            place += 1


def drawn_numbers(canvas: Canvas, place: int) -> list[list[tuple[float, float]]]:
    lines = canvas.axes[place].get_lines()
    return [list(map(tuple, np.asarray(line.get_xydata(), dtype=float).tolist())) for line in lines]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_drawn_is_the_data_and_no_words_leave_the_page_or_cover_a_panel(name: str) -> None:
    figure = made(name)
    canvas = draw(figure)
    for place, panel in enumerate(figure.panels):
        drawn = drawn_numbers(canvas, place)
        for one in panel.series:
            if one.kind in ("line", "step", "points") and len(one) and not any(map(isnan, map(float, one.y))):
                assert list(zip(map(float, one.x), map(float, one.y), strict=True)) in drawn, one.label
    page = canvas.bbox
    legend = canvas.legends[0].get_window_extent()
    boxes = [axes.get_tightbbox() for axes in canvas.axes]
    for box in [legend, *boxes, *(text.get_window_extent() for text in canvas.texts)]:
        assert box is not None
        assert page.x0 - 1 <= box.x0 < box.x1 <= page.x1 + 1
        assert page.y0 - 1 <= box.y0 < box.y1 <= page.y1 + 1
    assert not any(box is not None and legend.overlaps(box) for box in boxes)


def test_the_same_figure_gives_the_same_files_and_each_is_what_it_says(tmp_path: Path) -> None:
    paths = write_figure(made("fig-arch"), tmp_path / "new" / "one")
    again = write_figure(FIGURES["fig-arch"](lifelike(SEEDS, ["architecture"])), tmp_path / "two")
    assert [path.name for path in paths] == [f"fig-arch.{ending}" for ending in ("svg", "png", "pdf", "csv")]
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    assert [path.read_bytes()[:5] for path in paths] == [b"<?xml", b"\x89PNG\r", b"%PDF-", b"panel"]
    assert sorted(path.name for path in paths[0].parent.iterdir()) == sorted(path.name for path in paths)


def test_the_largest_picture_stays_small() -> None:
    late = {name: at_every_step(record) for name, record in wide().study("symmetric").items()}
    figure = FIGURES["fig-transfer"](Evidence({"symmetric": late}, {}))
    assert max(max(one.x) for _, one in every(figure) if one.kind == "line") == 15_000
    assert len(pictures_of(figure, ["svg"])["svg"]) <= MOST_BYTES


def at_every_step(record: RunRecord) -> RunRecord:
    """A run that groks so late that all its looks are shown."""
    validation = [0.1 + step / 17_000 for step in record.evaluations["step"]]
    return replace(
        record, evaluations=record.evaluations | {"validation_accuracy": [min(value, 0.96) for value in validation]}
    )


def test_the_house_style_leaves_nothing_behind() -> None:
    with matplotlib.rc_context({"font.size": 31, "axes.grid": False}):
        with house_style():
            assert matplotlib.rcParams["font.size"] == 8
        assert (matplotlib.rcParams["font.size"], matplotlib.rcParams["axes.grid"]) == (31, False)
    assert "matplotlib.pyplot" not in sys.modules


# The command.


def test_the_command_writes_a_figure_of_packed_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = list(lifelike(None, ["architecture"]).study("architecture").values())
    save_records(tmp_path / "a.records.gz", records[:3])
    save_records(tmp_path / "b.records.gz", records[2:])
    assert (
        run(
            [
                "reproduce",
                "synchronization",
                "--figure",
                "fig-arch",
                "--from",
                str(tmp_path),
                "--out",
                str(tmp_path / "out"),
            ]
        )
        == 0
    )
    shown = capsys.readouterr().out
    assert f"{len(records)} runs" in shown
    assert len(list((tmp_path / "out").iterdir())) == 4
    alone = FIGURES["fig-arch"](evidence_at(tmp_path / "a.records.gz"))
    assert "3 runs" in alone.title


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fig-two-phases"], "synchronization has no figure 'fig-two-phases'; did you mean 'fig-two-phase'?"),
        (["fig-arch", "--from", "nowhere"], "there is no folder 'nowhere'"),
        (["fig-arch", "--from", "."], "'.' holds no finished runs and no records (*.records.gz)"),
        (["fig-arch", "--from", "bad.records.gz"], "the records 'bad.records.gz' cannot be read"),
    ],
)
def test_the_command_refuses_in_one_sentence(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if "bad.records.gz" in arguments:
        Path("bad.records.gz").write_bytes(b"nothing")
    assert run(["reproduce", "synchronization", "--figure", *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert not Path("figures").exists()


def test_without_matplotlib_a_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(["reproduce", "synchronization", "--figure", "fig-arch", "--from", "x"]) == 2
    assert "pip install 'grokscope[report]'" in capsys.readouterr().err
