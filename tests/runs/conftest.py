"""A folder of runs that tests only read."""

import os
from pathlib import Path

import pytest
from stored_runs import ADD, FORK, S3

from grokscope.jobs import run_all
from grokscope.runs import Store


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        run_all([ADD, S3, FORK], Store(folder), compiled=False)
    Store(folder).add(ADD.with_seed(10))  # planned, and not begun
    return folder
