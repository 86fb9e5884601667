"""A remote place is opened by its address, and copied into a folder."""

from pathlib import Path

import pytest
from studied_runs import BASE, LAW, MADE_FOR_BASE, OTHER, RUNS, SPEC, studies

from grokscope.jobs.worker import work
from grokscope.runs import Store, open_store, pull
from grokscope.specs import Plan


def test_a_remote_store_keeps_studies_and_pulling_brings_them(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    address, out = f"file://{tmp_path / 'share'}", tmp_path / "pulled"
    out.mkdir()
    work(Plan(address, RUNS, made_for=MADE_FOR_BASE), lambda message: None)
    with open_store(address) as store:
        assert studies(store) == (BASE, LAW)
        assert studies(store, RUNS[1]) == ()
    assert pull(address, out) == 2
    assert studies(Store(out)) == (BASE, LAW)
    work(Plan(address, (SPEC,), made_for=((OTHER,),)), lambda message: None)
    with open_store(address, only=("format", "spec.json", "outcome.json")) as store:
        assert studies(store) == (OTHER, BASE, LAW)
    assert pull(address, out) == 0, "nothing was trained"
    assert studies(Store(out)) == (OTHER, BASE, LAW)
