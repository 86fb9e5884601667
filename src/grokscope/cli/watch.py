"""`grokscope watch`: a folder of runs, seen while they train."""

import json
import sys
import time
from dataclasses import asdict
from typing import Literal

from grokscope.cli.options import Flag, Folder, JsonFlag
from grokscope.errors import InputError
from grokscope.runs import open_runs

__all__ = ["watch"]


def watch(
    folder: Folder,
    group_by: Literal["stack", "task", "seeds"] = "stack",
    once: Flag = False,
    every: float = 1.0,
    as_json: JsonFlag = False,
) -> None:
    """Watch runs while they train.

    Each line of the table stands for a group of runs; below it stand forecasts of those that have neither grokked nor
    ended (the middle one of their median steps and intervals), and what synchronises, groks or diverges is announced.
    Speed is that of the last minute; time left counts the runs that have a folder, each to its last step. Watching
    takes no lock, and Ctrl-C ends only the watching. If more than 400 runs had ended before, the logs of 400 stand for
    all of them, and the display says so.

    Args:
        group_by: stack: runs that can train together; task: the same, split by task; seeds: runs that differ only in
            seed.
        once: Print the table once and exit (automatic if the output is not a terminal).
        every: Seconds between updates.

    Examples:
        grokscope watch runs/first
        grokscope watch runs/first --once
    """
    if not 0.05 <= every <= 3600:
        raise InputError(f"--every must lie between 0.05 and 3600 seconds, got {every}")
    open_runs(folder)  # rejects what is no folder

    from rich.console import Console
    from rich.live import Live

    from grokscope.cli.frames import BLOCKS, frame
    from grokscope.cli.watcher import Watcher

    watcher, console = Watcher(folder, group_by), Console(highlight=False)
    if as_json:  # without NaN, which JSON does not have
        picture = json.loads(json.dumps(asdict(watcher.snapshot())), parse_constant=lambda name: None)
        print(json.dumps(picture, ensure_ascii=False))
        return
    plain = not _can_print(BLOCKS)
    if once or not console.is_terminal:
        console.print(frame(watcher.snapshot(), console.width, plain))
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(frame(watcher.snapshot(), console.width, plain), refresh=True)
            time.sleep(every)


def _can_print(letters: str) -> bool:
    try:
        letters.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
