"""Somebody's forecaster in a process of its own, which is given prefixes and nothing else.

The scorer's memory, with the ends of the runs in it, is not there to be searched. Each question is answered by a fork
of the process as it was when the file had been read, so that nothing is remembered from one to the next; where a system
has no forks, the file is read anew for each. What would outlast a fork is blocked (`own_limits`). Whoever passes all
that and remembers still answers otherwise than the second process, which reads the same file and is asked about one run
at a time: the scorer compares the two.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from grokscope.errors import InputError, require
from grokscope.files import named, read_given
from grokscope.forecast.forecast import Forecast
from grokscope.forecast.own_file import OwnForecaster, own_forecaster
from grokscope.forecast.own_limits import Limits, file_numbers
from grokscope.forecast.prefix import Prefix

__all__ = ["ForecasterApart", "main"]

START = "from grokscope.forecast.own_process import main; main()"


class ForecasterApart:
    """The forecaster in a file, run apart; to be closed, as by `with`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     text = "def predict(runs, horizon): return [(0.5, {0.5: 99}) for _ in runs]"
    ...     _ = Path(folder, "mine.py").write_text(text)
    ...     with ForecasterApart(Path(folder, "mine.py")) as forecaster:
    ...         forecaster.predict([Prefix(np.array([0]), {})], 10)[0].median
    99.0
    """

    def __init__(self, path: Path, source: str | None = None, hidden: Sequence[Path] = ()) -> None:
        """Start it with the text of the file, which is read unless it was before; it may not open what is hidden."""
        require(source is not None or path.is_file(), f"there is no file {named(path)}")
        self.name = path.name
        if source is None:
            source = read_given(path, f"the forecaster {named(path)}").decode(errors="replace")
        self.source = source
        """The text that is run, whatever becomes of the file."""
        start = {"path": str(path.resolve()), "source": self.source, "hidden": file_numbers(hidden)}
        self._together = _Process(self.name, start)
        try:
            self._alone = _Process(self.name, start)
        except BaseException:
            self._together.close()
            raise
        said = self._together.said
        self.tier = int(said["tier"])
        self.alarms = {float(level): float(threshold) for level, threshold in said["alarms"]}

    def __enter__(self) -> "ForecasterApart":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End its processes."""
        self._together.close()
        self._alone.close()

    def predict(self, prefixes: Sequence[Prefix], horizon: int) -> list[Forecast]:
        """Its forecasts; the step and the horizon are those that were asked for."""
        header = {"horizon": horizon, "runs": [_shape(run) for run in prefixes]}
        arrays = b"".join(
            values.tobytes() for run in prefixes for values in (run.steps.astype(np.int64), *_floats(run).values())
        )
        process = self._alone if len(prefixes) == 1 else self._together
        found = process.answer(header, arrays)["forecasts"]
        require(len(found) == len(prefixes), f"predict of {self.name} must answer for {len(prefixes)} runs", len(found))
        return [
            Forecast(
                run.step, float(probability), horizon, {float(one): float(left) for one, left in levels}, self.tier
            )
            for run, (probability, levels) in zip(prefixes, found, strict=True)
        ]


class _Process:
    """A process that has read the file."""

    def __init__(self, name: str, start: Mapping[str, Any]) -> None:
        self._name = name
        # One line of one process: more threads would only wait for each other, and do not outlive a fork.
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        try:
            self.said = self.answer(start, b"")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        with suppress(OSError):
            _pipe(self._process.stdin).close()
        self._process.kill()
        self._process.wait()
        _pipe(self._process.stdout).close()

    def answer(self, header: Mapping[str, Any], arrays: bytes) -> Mapping[str, Any]:
        try:
            _send(_pipe(self._process.stdin), json.dumps(header).encode(), arrays)
            parts = _receive(_pipe(self._process.stdout))
        except OSError:
            parts = None
        if parts is None:
            raise InputError(f"{self._name} ended its process without an answer")
        found: dict[str, Any] = json.loads(parts[0])
        if "error" in found:
            raise InputError(found["error"])
        return found


def main() -> None:
    """Answer questions on the standard input until it ends: the process of `ForecasterApart`."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what the file prints is no answer
    first = _receive(questions)
    if first is None:
        return
    start = json.loads(first[0])
    sys.dont_write_bytecode = True  # which would be a file that is written
    limits = Limits((device, number) for device, number in start["hidden"])
    try:
        forecaster = own_forecaster(start["source"], Path(start["path"]))
        limits.end_reading(forecaster.name)
    except InputError as error:
        limits.stage = ""
        return _send(answers, json.dumps({"error": str(error)}).encode())
    _send(answers, json.dumps({"tier": forecaster.tier, "alarms": [*forecaster.alarms.items()]}).encode())
    while (question := _receive(questions)) is not None:
        if hasattr(os, "fork"):
            answer = _forked(forecaster, question, (questions, answers), limits)
        else:
            answer = _anew(start, question, limits)
        if answer is None:
            answer = json.dumps({"error": f"{forecaster.name} ended its process without an answer"}).encode()
        _send(answers, answer)


def _anew(start: Mapping[str, Any], question: tuple[bytes, bytes], limits: Limits) -> bytes:
    limits.stage = "reading"
    forecaster = own_forecaster(start["source"], Path(start["path"]))
    limits.stage = "answering"
    try:
        return _forecasts(forecaster, *question)
    finally:
        limits.stage = ""


def _forked(
    forecaster: OwnForecaster, question: tuple[bytes, bytes], pipes: Sequence[IO[bytes]], limits: Limits
) -> bytes | None:
    """The answer of a copy of this process, which ends with it; None if it ended before."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            for pipe in pipes:  # neither later questions nor others' answers
                os.close(pipe.fileno())
            limits.stage = "answering"
            with os.fdopen(writing, "wb") as mine:
                _send(mine, _forecasts(forecaster, *question))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as theirs:
        found = _receive(theirs)
    with suppress(ProcessLookupError):
        os.kill(child, 9)
    os.waitpid(child, 0)
    return None if found is None else found[0]


def _forecasts(forecaster: OwnForecaster, header: bytes, arrays: bytes) -> bytes:
    parts = json.loads(header)
    try:
        found = forecaster.predict(_prefixes(parts["runs"], arrays), parts["horizon"])
        plain = [(float(one.probability), [(float(a), float(b)) for a, b in one.quantiles.items()]) for one in found]
    except InputError as error:
        return json.dumps({"error": str(error)}).encode()
    return json.dumps({"forecasts": plain}).encode()


def _floats(run: Prefix) -> dict[str, np.ndarray]:
    return {name: np.asarray(values, dtype=np.float64) for name, values in run.columns.items()}


def _shape(run: Prefix) -> dict[str, Any]:
    return {"rows": len(run.steps), "columns": [*run.columns], "configuration": dict(run.configuration)}


def _prefixes(shapes: Sequence[Mapping[str, Any]], arrays: bytes) -> list[Prefix]:
    found, place = [], 0
    for shape in shapes:
        rows = shape["rows"]
        steps = np.frombuffer(arrays, np.int64, rows, place).copy()
        columns = {}
        for name in shape["columns"]:
            place += 8 * rows
            columns[name] = np.frombuffer(arrays, np.float64, rows, place).copy()
        place += 8 * rows
        found.append(Prefix(steps, columns, shape["configuration"]))
    return found


def _send(pipe: IO[bytes], header: bytes, arrays: bytes = b"") -> None:
    pipe.write(len(header).to_bytes(8, "little") + len(arrays).to_bytes(8, "little") + header)
    pipe.write(arrays)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> tuple[bytes, bytes] | None:
    """A header and what follows it; None at the end."""
    sizes = pipe.read(16)
    if len(sizes) < 16:
        return None
    header, rest = int.from_bytes(sizes[:8], "little"), int.from_bytes(sizes[8:], "little")
    found = pipe.read(header), pipe.read(rest)
    return found if (len(found[0]), len(found[1])) == (header, rest) else None


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
