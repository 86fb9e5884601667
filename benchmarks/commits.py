"""Whether a commit trains and evaluates as fast on a CPU as an earlier one: processor time, in interleaved rounds.

Each commit is checked out into a folder of its own and stays alive in a process; both train the paper's p = 97 model,
one run on one thread, and evaluate it. The ratio is that of the earlier commit's time to the later one's: 1 is as fast.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.provenance import save

ROOT = Path(__file__).parents[1]
WORK = """
import sys, time
import torch
from grokscope.measures import snapshot
from grokscope.specs import RunSpec
from grokscope.training import Cohort, advance, initial_state
torch.set_num_threads(1)
compiled, steps = sys.argv[1] == "compiled", int(sys.argv[2])
cohort = Cohort([RunSpec()])
state = initial_state(cohort)
works = {
    "training": lambda: advance(state, cohort, steps, compiled),
    "evaluating": lambda: snapshot(state.weights, cohort, compiled),
}
for work in works.values():
    work()
print("ready", flush=True)
for line in sys.stdin:
    begun = time.process_time()
    works[line.strip()]()
    print(time.process_time() - begun, flush=True)
"""


def started(folder: Path, how: str, steps: int) -> "subprocess.Popen[str]":
    """A process that has the sources of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WORK, how, str(steps)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    child = subprocess.Popen(command, text=True, cwd=folder, env=environment, **pipes)
    assert child.stdout is not None
    if child.stdout.readline().strip() != "ready":
        raise SystemExit(f"the sources in {folder.name} did not start")
    return child


def time_of(child: "subprocess.Popen[str]", kind: str) -> float:
    assert child.stdin is not None
    assert child.stdout is not None
    print(kind, file=child.stdin, flush=True)
    return float(child.stdout.readline())


def compare(earlier: Path, later: Path, how: str, rounds: int, steps: int) -> dict[str, Any]:
    """Median times of both, and the median of the rounds' ratios."""
    children = {"earlier": started(earlier, how, steps), "later": started(later, how, steps)}
    found: dict[str, Any] = {}
    for kind in ("training", "evaluating"):
        times: dict[str, list[float]] = {name: [] for name in children}
        for number in range(rounds):
            order = list(children) if number % 2 else list(children)[::-1]
            for name in order:
                times[name].append(time_of(children[name], kind))
        ratios = sorted(a / b for a, b in zip(times["earlier"], times["later"], strict=True))
        found[kind] = {name: round(statistics.median(values), 4) for name, values in times.items()}
        found[kind] |= {"ratio": round(statistics.median(ratios), 4), "least": round(ratios[0], 4)}
        found[kind]["most"] = round(ratios[-1], 4)
        print(f"{how} {kind}: {found[kind]}", flush=True)
    for child in children.values():
        child.kill()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("earlier", help="a commit")
    parser.add_argument("later", nargs="?", default="HEAD", help="another; the present one if not given")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=25, help="of a round")
    parser.add_argument("--how", nargs="*", default=["eager", "compiled"], choices=("eager", "compiled"))
    parser.add_argument("--name", default="commits", help="results go to NAME-cpu.json")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folders, commits = [], []
        for name in (chosen.earlier, chosen.later):
            folder = Path(place, str(len(folders)))
            git("worktree", "add", "--quiet", "--detach", str(folder), name)
            folders.append(folder)
            commits.append(git("rev-parse", "--short=12", name))
        try:
            found = {how: compare(folders[0], folders[1], how, chosen.rounds, chosen.steps) for how in chosen.how}
        finally:
            for folder in folders:
                git("worktree", "remove", "--force", str(folder))
    save(f"{chosen.name}-cpu", {"earlier": commits[0], "later": commits[1], "rounds": chosen.rounds, **found})


def git(*words: str) -> str:
    """What git answers."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
