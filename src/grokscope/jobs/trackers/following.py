"""The mirroring process: it follows the folder's logs and hands each new row to a tracker, once.

What was sent is noted in DIR/trackers/NAME.json. A run that is continued writes the same rows again, so those up to the
noted step are not sent twice.
"""

import json
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

from grokscope.errors import InputError
from grokscope.files import write_atomically
from grokscope.jobs.trackers.kinds import TRACKERS, Tracker, Word, place_of
from grokscope.runs.following import Followed, Follower

__all__ = ["main", "send"]

EVERY = 1.0  # seconds between two looks
FAILED = 1


def main(arguments: Sequence[str], source: TextIO = sys.stdin) -> int:
    """Mirror until the source ends; what goes wrong is one sentence on standard error and status 1."""
    word: Any = arguments[0]
    out = Path(arguments[1])
    try:
        follower = Follower(out, only=json.loads(source.readline()))
        ended = threading.Event()
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
    notes = place_of(word, out).with_suffix(".json")
    sent, tracker = _noted(notes), TRACKERS[word](out)
    while True:
        is_last = ended.is_set()  # asked before looking, so that the last look sees everything
        before = dict(sent)
        send(tracker, follower.look(), sent)
        if sent != before:
            write_atomically(notes, json.dumps(sent).encode())
        if is_last:
            break
        ended.wait(EVERY)
    tracker.close()


def send(tracker: Tracker, runs: Iterable[Followed], sent: dict[str, int]) -> None:
    """Hand over the rows that come after the last step sent of each run; what is undefined is left out."""
    for run in runs:
        for step in sorted(step for step in run.rows if step > sent.get(run.name, -1)):
            values = {name: value for name, value in run.rows[step].items() if isinstance(value, int | float)}
            tracker.log(run, step, {name: float(value) for name, value in values.items() if name != "step"})
            sent[run.name] = step


def _noted(path: Path) -> dict[str, int]:
    try:
        return {str(name): int(step) for name, step in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
