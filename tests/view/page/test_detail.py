"""Runs shown in detail."""

from pathlib import Path

import pytest
from page_runs import synthetic_records

from grokscope.errors import InputError
from grokscope.runs.packing import save_records
from grokscope.view.page import source_of
from grokscope.view.page.embedded import embedded_data


def test_weights_that_are_gone_cannot_be_shown_in_detail(tmp_path: Path) -> None:
    save_records(tmp_path / "a.records.gz", synthetic_records(1))
    source = source_of(tmp_path)
    with pytest.raises(InputError, match="--detail needs stored weights"):
        embedded_data(source, [source.runs[0].name])
