"""What docs/concepts.md, docs/faq.md and the README show of stored records follows from them."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from grokscope.studies import Evidence, find_study
from grokscope.studies.sources import read_evidence
from grokscope.view.charts.files import figure_csv
from scripts import DOCS, module_at


@pytest.fixture(scope="module")
def made() -> ModuleType:
    return module_at(DOCS / "make_concepts.py")


@pytest.fixture(scope="module")
def evidence(made: ModuleType) -> Evidence:
    return read_evidence(find_study(made.STUDY), DOCS.parent / "results" / made.STUDY)


def test_every_picture_is_of_the_records(made: ModuleType, evidence: Evidence) -> None:
    for build in made.FIGURES:
        figure = build(evidence)
        assert figure_csv(figure) == (made.PICTURES / f"{figure.name}.csv").read_bytes()
        assert (made.PICTURES / f"{figure.name}.svg").stat().st_size
    drawn = {path.stem for path in Path(made.PICTURES).glob("*.svg")}
    assert drawn == {build(evidence).name for build in made.FIGURES}


def test_every_number_is_of_the_records(made: ModuleType, evidence: Evidence) -> None:
    for page, parts in made.blocks(evidence).items():
        text = page.read_text(encoding="utf-8")
        for name, block in parts.items():
            assert made.placed(text, name, block) == text
            assert block in text


def test_other_records_give_other_numbers(made: ModuleType, evidence: Evidence) -> None:
    base = {name: run for name, run in evidence.experiment("base").items() if not name.endswith(("1", "2", "3"))}
    base[made.RUN] = evidence.experiment("base")[made.RUN]
    fewer = made.blocks(replace(evidence, records={**evidence.records, "base": base}))
    full = made.blocks(evidence)
    assert fewer[made.PAGE]["untrained"] != full[made.PAGE]["untrained"]
    assert fewer[made.QUESTIONS]["steps"] != full[made.QUESTIONS]["steps"]
    assert fewer[made.PAGE]["run"] == full[made.PAGE]["run"]  # of one run


def test_untrained_networks_are_read_before_the_first_step(made: ModuleType, evidence: Evidence) -> None:
    runs = made.base_runs(evidence)["add_mod97"]
    values = sorted(record.evaluations["fsd"][0] for record in runs)
    middle, low, high = made.untrained(runs)
    assert {record.evaluations["step"][0] for record in runs} == {0}
    assert values[0] <= low <= middle <= high <= values[-1]
    assert middle == pytest.approx((values[len(values) // 2 - 1] + values[len(values) // 2]) / 2)


def test_the_glossary_names_the_networks_whose_band_it_gives(made: ModuleType, evidence: Evidence) -> None:
    runs = made.base_runs(evidence)["add_mod97"]
    _, low, high = made.untrained(runs)
    said = " ".join(made.glossary_block(evidence).split())
    assert f"Of {len(runs)} untrained networks of addition mod 97 with 512 neurons, for example, 90 %" in said
    assert f"between {low:.2f} and {high:.2f};" in said
