"""`grokscope watch`, printed once and on a terminal."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from watched_runs import evaluation, written

from grokscope.cli import run
from grokscope.runs import Store
from grokscope.specs import RunSpec


def test_once_prints_a_picture_and_a_wrong_folder_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(Store("runs").add(RunSpec()), time.time(), evaluation(0, 0.0, 0.1))
    for more in ([], ["--once"]):  # what is captured is no terminal
        assert run(["watch", "runs", *more]) == 0
        assert "0 of 1 runs finished" in capsys.readouterr().out
    assert run(["watch", "runs", "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)["lines"]
    assert (line["runs"], line["finished"], line["fsd"][-1]) == (1, 0, None)
    assert 0 <= line["ahead"]["probability"] <= 1
    assert run(["watch", "rums"]) == 2
    assert "did you mean 'runs'?" in capsys.readouterr().err
    assert run(["watch", "runs", "--every", "nan"]) == 2


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_on_a_terminal_it_continues_until_ctrl_c(tmp_path: Path) -> None:
    folder = Store(tmp_path).add(RunSpec())
    written(folder, time.time(), evaluation(0, 0.0, 0.1))
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, "-m", "grokscope", "watch", str(tmp_path), "--every", "0.1"]
    child = subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    heard = b""
    while b"runs finished" not in heard or b"forecast: runs, probability of grokking" not in heard:
        heard += os.read(ours, 4096)
    written(folder, time.time(), evaluation(100, 0.99, 0.9))
    while b"grokked at step 100" not in heard:
        heard += os.read(ours, 4096)
    child.send_signal(signal.SIGINT)
    while True:
        try:
            if not os.read(ours, 4096):
                break
        except OSError:  # the other end has gone
            break
    os.close(ours)
    _, complaint = child.communicate(timeout=60)
    assert (child.returncode, complaint) == (130, b"grokscope: ended by Ctrl-C; whatever was stored stays as it is\n")
