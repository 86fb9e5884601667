"""Where records are read: folders of runs, packed files, several of them together."""

from dataclasses import replace
from pathlib import Path

import pytest
from planted import run
from small_study import STUDY

from grokscope.errors import InputError
from grokscope.runs.packing import save_records
from grokscope.specs import Membership, RunSpec
from grokscope.studies.sources import read_evidence, read_records

RUN = run(RunSpec(), grok=1000)
HERE, THERE = Membership("small", "tiny", "tiny_s0"), Membership("other", "base", "a")


def test_a_run_in_several_files_is_the_last_ones_with_the_memberships_of_all(tmp_path: Path) -> None:
    longer = run(RunSpec(), grok=1000, last=16_000)
    save_records(tmp_path / "1.records.gz", [replace(RUN, made_for=(HERE,))])
    save_records(tmp_path / "2.records.gz", [replace(longer, made_for=(THERE, HERE))])
    (found,) = read_records(tmp_path)
    assert found.timeline.last == 16_000
    assert {*found.made_for} == {HERE, THERE}
    assert list(read_evidence(STUDY, tmp_path).records["tiny"]) == ["tiny_s0"]
    assert read_records(tmp_path / "1.records.gz")[0].timeline.last == 15_000


def test_records_of_other_studies_alone_are_rejected_with_their_studies(tmp_path: Path) -> None:
    save_records(tmp_path / "1.records.gz", [replace(RUN, made_for=(THERE,))])
    with pytest.raises(InputError, match="none of these runs was made for small: they were made for other"):
        read_evidence(STUDY, tmp_path)


def test_a_place_without_records_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no finished runs and no records"):
        read_records(tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        read_records(tmp_path / "nothing")
