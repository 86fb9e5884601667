"""A folder of results: whole, from the records alone, and the same bytes every time."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from planted import run
from small_study import NORM, STUDY

from grokscope.specs import Membership
from grokscope.studies import Evidence, rules_digest
from grokscope.studies.results import write_results
from grokscope.view.charts.figure import Figure
from grokscope.view.render import csv_of


@pytest.fixture
def evidence() -> Evidence:
    records = [
        replace(run(spec), made_for=(Membership("small", "tiny", name),)) for name, spec in STUDY.runs()["tiny"].items()
    ]
    return STUDY.evidence([*records, run(STUDY.runs(3)["tiny"]["tiny_s2"])])


def test_everything_is_written_and_written_again_alike(evidence: Evidence, tmp_path: Path) -> None:
    done: list[str] = []
    claims = write_results(STUDY, evidence, tmp_path / "a", done.append, asked_for=["all"])
    write_results(STUDY, evidence, tmp_path / "b", asked_for=["all"])
    assert done == ["tab-norm", "sup-norm", "fig-norm", "claims"]
    files = {str(path.relative_to(tmp_path / "a")) for path in (tmp_path / "a").rglob("*") if path.is_file()}
    assert files >= {"RESULTS.md", "claims.json", "provenance.json", "tables/tab-norm.csv", "supplements/sup-norm.tex"}
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)
    assert json.loads((tmp_path / "a" / "claims.json").read_text()) == claims
    assert claims[0]["verdict"] == "reproduced"
    provenance = json.loads((tmp_path / "a" / "provenance.json").read_text())
    assert provenance["rules"] == rules_digest(STUDY.claims)
    assert provenance["runs"] == 2
    assert len(provenance["made_for_no_experiment"]) == 1
    assert provenance["experiments"]["forks"] == {"here": 0, "of": 2, "runs": 0, "seeds": "0"}


def test_every_number_of_table_figure_claim_and_sentence_is_the_quantitys(evidence: Evidence, tmp_path: Path) -> None:
    write_results(STUDY, evidence, tmp_path)
    value = evidence.measure(NORM)
    table = STUDY.tables[0].build(evidence)
    assert table.rows[0][1].ours == value.number()
    assert table.rows[0][1].quantity == NORM.key
    assert b"30" in csv_of(table)
    page = (tmp_path / "RESULTS.md").read_text()
    assert f"The norm is {value.text}." in page
    assert f"[The norm is positive.](tables/tab-norm.md) (§1) | yes | {value.text} \\[" in page
    assert "## Supplementary analyses" in page


def test_a_claim_links_to_its_item_whatever_that_is_called(evidence: Evidence, tmp_path: Path) -> None:
    item, claim = STUDY.figures[0], STUDY.claims[0]
    figure = replace(STUDY.build(item, evidence, Figure), name="norms")
    own = replace(item, name="norms", build=lambda evidence: figure)
    study = replace(STUDY, figures=(own,), claims=(replace(claim, shown_in="norms"),))
    write_results(study, evidence, tmp_path)
    assert "[The norm is positive.](figures/norms.svg)" in (tmp_path / "RESULTS.md").read_text()
    assert (tmp_path / "figures" / "norms.svg").exists()
