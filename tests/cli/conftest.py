from pathlib import Path

import pytest
from small_commands import EXECUTORS, TINY, trained_here


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a spec in it, in which commands run."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.json").write_text(TINY.to_json())
    return tmp_path


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{EXECUTORS}.run_locally", trained_here)
