"""The training's side of a mirror: a child process is started, and whatever becomes of it, training goes on."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from grokscope.jobs.trackers.kinds import Word

__all__ = ["mirrored"]

PATIENCE = 60.0  # seconds a tracker may take to hand over the last rows


@contextmanager
def mirrored(
    words: Sequence[Word],
    out: Path | str,
    runs: Sequence[str],
    warn: Callable[[str], None],
    patience: float = PATIENCE,
    command: Callable[[Word], list[str]] | None = None,
) -> Iterator[None]:
    """Mirror the logs of these runs while the block is executed; a tracker that fails or hangs costs one warning."""
    started = [_Mirror(word, (command or _command(out))(word), runs, warn) for word in dict.fromkeys(words) if runs]
    try:
        yield
    finally:
        for mirror in started:
            mirror.close(patience)


def _command(out: Path | str) -> Callable[[Word], list[str]]:
    return lambda word: [sys.executable, "-m", "grokscope.jobs.trackers", word, str(out)]


class _Mirror:
    """One child, which does not hear the terminal's Ctrl-C: it ends when its input does, ours or our death's."""

    def __init__(self, word: Word, command: list[str], runs: Sequence[str], warn: Callable[[str], None]) -> None:
        self.word, self.warn, self.has_warned = word, warn, threading.Lock()
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "WANDB_SILENT": "true"}
        self.child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            start_new_session=True,
            env=environment,
        )
        self.listener = threading.Thread(target=self._wait, daemon=True)
        self.listener.start()
        # In a thread: a child that does not read must not hold us up, and ten thousand names fill a pipe.
        self.teller = threading.Thread(target=self._tell, args=(runs,), daemon=True)
        self.teller.start()

    def _tell(self, runs: Sequence[str]) -> None:
        assert self.child.stdin is not None
        with suppress(OSError):  # it has died already, which the listener says
            self.child.stdin.write(json.dumps(list(runs)).encode() + b"\n")
            self.child.stdin.flush()

    def _wait(self) -> None:
        if self.child.wait() != 0:
            self._complain(self._complaint())

    def _complain(self, why: str) -> None:
        if self.has_warned.acquire(blocking=False):  # once
            self.warn(f"{self.word} does not follow any more, training does not need it: {why}")

    def _complaint(self) -> str:
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors.read().decode(errors="replace").splitlines() if line.strip()]
        ours = [line.removeprefix("grokscope: ") for line in lines if line.startswith("grokscope: ")]
        return (ours or lines or [f"its process ended with status {self.child.returncode}"])[-1]

    def close(self, patience: float) -> None:
        """Let it finish; if it does not, end it and everything it started."""
        self.teller.join(patience)
        if not self.teller.is_alive():
            with suppress(OSError):
                assert self.child.stdin is not None
                self.child.stdin.close()
            self.listener.join(patience)
        if self.listener.is_alive():
            self._complain(f"it did not finish within {patience:g} seconds")
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.child.pid, signal.SIGKILL)  # with what it started: its group is its own
            self.listener.join()
        self.teller.join()  # whose pipe has ended by now
        if self.child.stdin is not None and not self.child.stdin.closed:
            with suppress(OSError):
                self.child.stdin.close()
        self.errors.close()
