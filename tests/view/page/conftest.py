"""A folder with one trained run."""

import os
import shutil
from pathlib import Path

import pytest
from page_runs import TINY

from grokscope.jobs import run_all
from grokscope.runs import Store


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        run_all([TINY], Store(folder), compiled=False)
    return folder


@pytest.fixture
def store(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "runs"))
