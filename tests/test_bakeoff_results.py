"""What the bake-off tries follows from its tuning, and the tuning's table from the stored runs."""

from pathlib import Path

from grokscope.experiments.bakeoff import CHOSEN, FIRST_TUNING_SEED
from grokscope.experiments.records import unpacked
from grokscope.report.bakeoff import tuned
from grokscope.report.render import csv_of, latex_of, markdown_of

FOLDER = Path(__file__).parents[1] / "results" / "bakeoff"


def test_every_arm_has_the_setting_that_its_tuning_chooses() -> None:
    records = unpacked(FOLDER / "tuning.records.gz")
    assert all(record.spec.seeds.split >= FIRST_TUNING_SEED for record in records)
    chosen, table = tuned(records)
    assert chosen == CHOSEN
    for ending, render in (("csv", csv_of), ("md", markdown_of), ("tex", latex_of)):
        assert render(table) == (FOLDER / f"tab-tuning.{ending}").read_bytes()
