import json
from dataclasses import replace
from pathlib import Path

import pytest
from planted_ends import planted_log
from small_commands import rejected, words

from grokscope.cli import run
from grokscope.forecast.benchmark import Ledger, seal_cells
from grokscope.runs import RunOutcome, RunRecord
from grokscope.runs.packing import save_records
from grokscope.specs import RunSpec
from grokscope.studies.foresight.cells import CELLS

SPECS = [
    replace(RunSpec(), training=replace(RunSpec().training, weight_decay=decay)).with_seed(seed)
    for decay in (1.0, 1.5, 2.0, 3.0)
    for seed in range(3)
]


@pytest.fixture
def packed(here: Path) -> Path:
    """Twelve runs of four cells in one packed file, and a forecaster that knows nothing."""
    times = [2000 + 100 * place for place in range(len(SPECS))]
    outcomes = [RunOutcome("grokked", memorized=300, grokked=time) for time in times]
    logs = [planted_log(time, noise=time) for time in times]
    save_records(here / "runs.records.gz", [RunRecord(*one, {}) for one in zip(SPECS, outcomes, logs, strict=True)])
    Path("mine.py").write_text("def predict(runs, horizon):\n    return [(0.5, {0.5: 1000}) for _ in runs]\n")
    return here


def test_own_forecasters_and_baselines_stand_in_one_table(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("benchmark runs.records.gz mine.py clock --json")) == 0
    mine, clock = json.loads(capsys.readouterr().out)
    assert (mine["name"], mine["tier"], mine["runs"], clock["tier"]) == ("mine.py", 5, 12, 0)
    assert mine["values"]["concordance at 25%"]["value"] == 0.5
    assert mine["values"]["AUROC across at 25%"]["low"] is None
    assert run(words("benchmark runs.records.gz mine.py")) == 0
    assert "12 runs in 4 cells" in capsys.readouterr().out


def test_a_page_has_every_score(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("benchmark runs.records.gz mine.py --out page.md")) == 0
    page = Path("page.md").read_text()
    assert "| mine.py | 5 | 0.50" in page
    calibration = page.partition("## Calibration")[2]
    assert "| mine.py | 5 | – | – | – | 0." in calibration, "it says one half of every run"
    capsys.readouterr()
    rejected(words("benchmark runs.records.gz mine.py --out page.md"), "exists already", packed, capsys)


def test_laws_are_scored_beside_the_floor(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("benchmark runs.records.gz --laws --json")) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["median"]["runs"] == 12
    assert run(words("benchmark runs.records.gz --laws")) == 0
    assert "over floor" in capsys.readouterr().out


def test_sealed_cells_are_scored_apart_and_every_score_is_noted(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seal_cells([spec for spec in SPECS if spec.training.weight_decay == 3.0], {}).save(Path("seal.json"))
    line = words("benchmark runs.records.gz mine.py clock --sealed seal.json")
    assert run(line) == 0
    assert "3 runs in 1 cell" in capsys.readouterr().out
    assert run(line) == 0
    assert "mine.py was scored 2 times on these sealed cells" in capsys.readouterr().out
    entries = Ledger(Path("LEDGER.jsonl")).entries()
    assert [one["forecaster"] for one in entries] == ["mine.py", "clock"] * 4
    assert [one.get("begins", False) for one in entries] == [True, True, False, False] * 2


def test_who_fails_on_sealed_cells_has_seen_them_and_is_in_the_ledger(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seal_cells([spec for spec in SPECS if spec.training.weight_decay == 3.0], {}).save(Path("seal.json"))
    Path("mine.py").write_text("def predict(runs, horizon):\n    raise ValueError('enough seen')\n")
    line = words("benchmark runs.records.gz mine.py --sealed seal.json")
    assert run(line) == 2
    [entry] = Ledger(Path("LEDGER.jsonl")).entries()
    assert (entry["forecaster"], entry["begins"]) == ("mine.py", True)
    Path("mine.py").write_text("def predict(runs, horizon):\n    return [(0.5, {0.5: 1000}) for _ in runs]\n")
    capsys.readouterr()
    assert run(line) == 0
    assert "mine.py was scored 2 times" in capsys.readouterr().out


def test_test_runs_of_the_collection_are_scored_by_their_seal_alone(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = [CELLS["S5-quick"].run(seed) for seed in range(3)]
    outcome = RunOutcome("grokked", memorized=300, grokked=2000)
    save_records(here / "runs.records.gz", [RunRecord(spec, outcome, planted_log(2000), {}) for spec in specs])
    other = seal_cells(SPECS[:3], {})
    other.save(Path("other.json"))
    for line in ("clock", "--laws", "clock --sealed other.json"):
        rejected(words(f"benchmark runs.records.gz {line}"), "test runs of `foresight` among these", here, capsys)
    seal_cells(specs, {}).save(Path("seal.json"))
    Path("mine.py").write_text("def predict(runs, horizon):\n    return [(0.5, {0.5: 1000}) for _ in runs]\n")
    assert run(words("benchmark runs.records.gz mine.py --sealed seal.json")) == 0
    assert "its alarms are not scored" in capsys.readouterr().out


def test_a_forecaster_cannot_read_the_runs_that_it_is_scored_on(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.py").write_text("import gzip\ntext = gzip.open('runs.records.gz').read()\npredict = lambda r, h: []\n")
    rejected(words("benchmark runs.records.gz mine.py"), "may not read the runs that it is scored on", packed, capsys)


def test_the_ledger_has_the_text_that_was_run_and_says_that_runs_are_missing(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that becomes the sealed one while it runs is not taken for it; neither are some of the runs for all."""
    honest = "def predict(runs, horizon):\n    return [(0.5, {0.5: 1000}) for _ in runs]\n"
    sealed = [replace(SPECS[-1].with_seed(seed)) for seed in range(4)]  # one more than there are
    seal_cells(sealed, {"mine.py": honest}).save(Path("seal.json"))
    Path("mine.py").write_text(f"open('mine.py', 'w').write({honest!r})\n{honest}")
    assert run(words("benchmark runs.records.gz mine.py --sealed seal.json")) == 0
    assert "not all of the runs that were sealed" in capsys.readouterr().out
    [_, entry] = Ledger(Path("LEDGER.jsonl")).entries()
    assert Path("mine.py").read_text() == honest
    assert (entry["is_sealed"], entry["has_all_runs"]) == (False, False)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("benchmark runs.records.gz clok", "did you mean 'clock'"),
        ("benchmark runs.records.gz gone.py", "there is no file 'gone.py'"),
        ("benchmark runs.records.gz clock --split family", "the family makes only one"),
        ("benchmark runs.records.gz clock --laws", "--laws takes no forecasters"),
        ("benchmark runs.records.gz clock --ledger x", "--ledger has no effect without --sealed"),
        ("benchmark gone clock", "there is no folder 'gone'"),
    ],
)
def test_rejects_what_cannot_be_scored(
    line: str, sentence: str, packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rejected(words(line), sentence, packed, capsys)


def test_calibration_curves_are_drawn_with_their_numbers(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert run(words("benchmark runs.records.gz mine.py clock --figure curves.svg --json")) == 0
    [mine, _] = json.loads(capsys.readouterr().out)
    [known] = [one for one in mine["calibration"]["bins"] if one["forecasts"]]
    rows = [line.split(",") for line in Path("curves.csv").read_text().splitlines()]
    [drawn] = [row for row in rows if row[:2] == ["Probabilities", "mine.py"]]
    assert [float(value) for value in drawn[2:4]] == pytest.approx([known["said"], known["came"]["value"]], rel=1e-5)
    assert drawn[6] == str(known["forecasts"])
    assert Path("curves.svg").read_text().startswith("<?xml")
    rejected(words("benchmark runs.records.gz mine.py --figure curves.png"), "must end in .svg", packed, capsys)
