"""Mirrors of our own log in W&B, TensorBoard and trackio: a process beside the training, which may fail alone.

`python -m grokscope.jobs.trackers wandb DIR` follows the runs named on standard input until that ends, and hands each
new row to a tracker, once. What was sent is noted in DIR/trackers/NAME.json. A run that is continued writes the same
rows again, so those up to the noted step are not sent twice. All trackers work without a network where their libraries
do: W&B with WANDB_MODE=offline, TensorBoard and trackio always.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Literal, TextIO

from grokscope.errors import InputError
from grokscope.files import DamagedError, read_json, write_atomically
from grokscope.runs.following import FollowedRun, Follower

__all__ = ["TRACKERS", "Tracker", "Word", "main", "mirror_logs", "reject_missing", "send"]

Word = Literal["wandb", "tensorboard", "trackio"]
Values = Mapping[str, float]
PROJECT = "grokscope"
PATIENCE = 60.0  # seconds a tracker may take to hand over the last rows
EVERY = 1.0  # seconds between two readings of the folder
FAILED = 1
INSTALL = "install it with: pip install 'grokscope[trackers]'"


class Tracker:
    """Takes the evaluations of runs; each run is opened in the tracker's library at its first row."""

    def __init__(self, out: Path, library: str) -> None:
        try:
            self.library = import_module(library)
        except ModuleNotFoundError as error:
            raise InputError(f"it needs {error.name}; {INSTALL}") from None
        self.out, self.runs = out, dict[str, Any]()

    def open(self, run: FollowedRun) -> Any:
        """What takes the rows of one run, by its methods `log` and `finish`."""
        raise NotImplementedError

    def log(self, run: FollowedRun, step: int, values: Values) -> None:
        """One row of one run; steps of a run come in order, each once."""
        if run.name not in self.runs:
            self.runs[run.name] = self.open(run)
        self.runs[run.name].log(dict(values), step=step)

    def close(self) -> None:
        """Hand over what is left."""
        for one in self.runs.values():
            one.finish()


class WandB(Tracker):
    """A W&B run for each run, with its content hash as id, so that a resumed run goes on in the same one."""

    def open(self, run: FollowedRun) -> Any:
        """Begin or continue it."""
        return self.library.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            dir=str(_folder("wandb", self.out)),
            id=run.spec.content_hash,
            name=run.name,
            group=self.out.name,
            config=run.spec.to_dict(),
            resume="allow",
            reinit="create_new",
            settings=self.library.Settings(console="off", silent=True, x_disable_stats=True, disable_git=True),
        )


class Trackio(Tracker):
    """A trackio run for each run, in a local database."""

    def __init__(self, out: Path, library: str) -> None:
        os.environ.setdefault("TRACKIO_DIR", str(_folder("trackio", out)))
        super().__init__(out, library)

    def open(self, run: FollowedRun) -> Any:
        """Begin or continue it."""
        return self.library.init(
            project=os.environ.get("TRACKIO_PROJECT", PROJECT),
            name=run.name,
            group=self.out.name,
            config=run.spec.to_dict(),
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )


class TensorBoard(Tracker):
    """A folder of events for each run."""

    def open(self, run: FollowedRun) -> Any:
        """A writer that begins with the run's spec."""
        writer = self.library.SummaryWriter(str(_folder("tensorboard", self.out) / run.name))
        writer.add_text("spec", f"```\n{run.spec.to_json()}\n```")
        return _Events(writer)


class _Events:
    """A run's events, a scalar for each column of a row."""

    def __init__(self, writer: Any) -> None:
        self.writer, self.finish = writer, writer.close

    def log(self, values: Values, step: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, global_step=step)


TRACKERS: dict[Word, tuple[type[Tracker], str]] = {
    "wandb": (WandB, "wandb"),
    "tensorboard": (TensorBoard, "torch.utils.tensorboard"),
    "trackio": (Trackio, "trackio"),
}


def reject_missing(words: Sequence[Word]) -> None:
    """Reject trackers whose packages, which have their names, are not installed.

    >>> reject_missing([])  # nothing is needed
    """
    for word in words:
        found = find_spec(word)
        if found is None or found.origin is None:  # a folder of that name, such as W&B makes, is no package
            raise InputError(f"the tracker {word} needs the package {word}; {INSTALL}")


def _folder(word: Word, out: Path) -> Path:
    """The folder of a tracker's files, made if it is new: DIR/trackers/NAME."""
    path = out.absolute() / "trackers" / word
    path.mkdir(parents=True, exist_ok=True)
    return path


def main(arguments: Sequence[str], source: TextIO = sys.stdin) -> int:
    """Mirror until the source ends; what goes wrong is one sentence on standard error and status 1."""
    word: Any = arguments[0]
    out, ended = Path(arguments[1]), threading.Event()
    try:
        follower = Follower(out, only=json.loads(source.readline()))
        threading.Thread(target=_wait_for_end, args=(source, ended), daemon=True).start()
        _mirror(word, out, follower, ended)
    except Exception as error:  # a tracker may raise anything
        sentence = " ".join(str(error).split()) if isinstance(error, InputError) else ascii(error)
        print(f"grokscope: {sentence}", file=sys.stderr, flush=True)
        return FAILED
    return 0


def _wait_for_end(source: TextIO, ended: threading.Event) -> None:
    source.read()
    ended.set()


def _mirror(word: Word, out: Path, follower: Follower, ended: threading.Event) -> None:
    notes, (kind, library) = _folder(word, out).with_suffix(".json"), TRACKERS[word]
    sent, tracker = _noted(notes), kind(out, library)
    is_last, pause = False, 0.0
    while not is_last:
        is_last, pause = ended.wait(pause), EVERY  # waited before reading, so that the last reading sees everything
        before = dict(sent)
        send(tracker, follower.update(), sent)
        if sent != before:
            write_atomically(notes, json.dumps(sent).encode())
    tracker.close()


def send(tracker: Tracker, runs: Iterable[FollowedRun], sent: dict[str, int]) -> None:
    """Hand over the rows that come after the last step sent of each run; what is undefined is left out.

    >>> class Printed(Tracker):
    ...     def __init__(self):
    ...         pass
    ...     def log(self, run, step, values):
    ...         print(run.name, step, values)
    >>> run = FollowedRun("add_mod97_s0", None, 0.0, rows={100: {"step": 100, "fsd": 0.5, "undefined": "why"}})
    >>> send(Printed(), [run], sent={})
    add_mod97_s0 100 {'fsd': 0.5}
    """
    for run in runs:
        for step in sorted(step for step in run.rows if step > sent.get(run.name, -1)):
            values = {name: value for name, value in run.rows[step].items() if isinstance(value, int | float)}
            tracker.log(run, step, {name: float(value) for name, value in values.items() if name != "step"})
            sent[run.name] = step


def _noted(path: Path) -> dict[str, int]:
    try:
        return {name: int(step) for name, step in read_json(path, dict).items()}
    except (FileNotFoundError, DamagedError, ValueError, TypeError):
        return {}


@contextmanager
def mirror_logs(
    words: Sequence[Word],
    out: Path | str,
    runs: Sequence[str],
    warn: Callable[[str], None],
    patience: float = PATIENCE,
    program: Sequence[str] = ("-m", "grokscope.jobs.trackers"),
) -> Iterator[None]:
    """Mirror the logs of these runs while the block is executed; a tracker that fails or hangs costs one warning.

    Example::

        with mirror_logs(["wandb"], "runs/first", ["add_mod97_s0"], warn=print):
            train()
    """
    command = [sys.executable, *program]
    started = [_Mirror(word, [*command, word, str(out)], runs, warn) for word in dict.fromkeys(words) if runs]
    try:
        yield
    finally:
        for mirror in started:
            mirror.close(patience)


class _Mirror:
    """One child, which does not hear the terminal's Ctrl-C: it ends when its input does, ours or our death's."""

    def __init__(self, word: Word, command: list[str], runs: Sequence[str], warn: Callable[[str], None]) -> None:
        self.word, self.warn, self.has_warned = word, warn, threading.Lock()
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self.child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "WANDB_SILENT": "true"},
        )
        assert self.child.stdin is not None
        self.input = self.child.stdin
        self.listener = threading.Thread(target=self._wait, daemon=True)
        # In a thread: a child that does not read must not hold us up, and ten thousand names fill a pipe.
        self.sender = threading.Thread(target=self._send, args=(json.dumps(list(runs)).encode(),), daemon=True)
        for thread in (self.listener, self.sender):
            thread.start()

    def _send(self, names: bytes) -> None:
        with suppress(OSError):  # it has died already, which the listener reports
            self.input.write(names + b"\n")
            self.input.flush()

    def _wait(self) -> None:
        if self.child.wait() != 0:
            self._warn(self._reason())

    def _warn(self, why: str) -> None:
        if self.has_warned.acquire(blocking=False):  # once
            self.warn(f"{self.word} does not follow any more, training does not need it: {why}")

    def _reason(self) -> str:
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors.read().decode(errors="replace").splitlines() if line.strip()]
        ours = [line.removeprefix("grokscope: ") for line in lines if line.startswith("grokscope: ")]
        return (ours or lines or [f"its process ended with status {self.child.returncode}"])[-1]

    def close(self, patience: float) -> None:
        """Let it finish; if it does not, end it and everything it started."""
        self.sender.join(patience)
        if not self.sender.is_alive():
            self._close_input()
            self.listener.join(patience)
        if self.listener.is_alive():
            self._warn(f"it did not finish within {patience:g} seconds")
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.child.pid, signal.SIGKILL)  # with what it started: its group is its own
            self.listener.join()
        self.sender.join()  # whose pipe has ended by now
        self._close_input()
        self.errors.close()

    def _close_input(self) -> None:
        with suppress(OSError):
            self.input.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
