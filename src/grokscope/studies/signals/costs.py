"""What one evaluation of a signal costs, in training steps of the same stack: measured, and kept beside the records.

`python -m grokscope.studies.signals.costs --out costs.json` measures it where the workers are.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from grokscope.activations import RunStack, subject_of
from grokscope.errors import InputError
from grokscope.files import named, read_json, write_json
from grokscope.measures import snapshot
from grokscope.measures.updates import WINDOW
from grokscope.runs.measuring import STEPS_AT_ONCE, measure_stack, measure_whole_run
from grokscope.runs.provenance import provenance
from grokscope.specs import RunSpec
from grokscope.studies.signals.catalogue import AFTERWARDS, MEASURES, Signal
from grokscope.studies.signals.experiments import CELLS
from grokscope.training import Cohort, advance, initial_state

__all__ = ["FILE", "LOGGED", "Costs", "main", "measure_costs", "read_costs", "save_costs"]

FILE = "costs.json"  # beside the records
LOGGED = "log"  # the evaluation that training logs: losses, accuracies, norm, FSD and rank together
STEPS = 50  # that are timed
TIMES = 3  # of which the fastest counts: the first compiles


@dataclass(frozen=True)
class Costs:
    """Training steps of one run that one evaluation of it takes as long as, by measure."""

    steps: dict[str, float] = field(default_factory=dict)
    """Measure, or `log` → training steps."""
    place: str = ""
    """The device, and how many runs shared it."""
    made_with: dict[str, str] = field(default_factory=dict)
    """Commit, device and versions."""

    def of(self, signal: Signal) -> float | None:
        """What one evaluation of a signal costs; None where that was not measured."""
        return self.steps.get(signal.measure.partition("@")[0] or LOGGED)


def measure_costs(
    run: RunSpec | None = None, device: str = "cpu", slots: int | None = None, steps: int = STEPS
) -> Costs:
    """Time each measure, and a training step, of a stack of seeds of one run: add mod 97 by the study's model."""
    spec = run or CELLS["add97"].run(0, "tf32" if device == "cuda" else "float32")
    count = slots or STEPS_AT_ONCE[torch.device(device).type]
    specs = [spec.with_seed(seed) for seed in range(count)]
    cohort = Cohort(specs, device)
    state = initial_state(cohort)

    def train() -> None:
        nonlocal state
        state, _ = advance(state, cohort, steps)

    step = _seconds(train, device) / steps
    subject = subject_of(specs, state.weights)
    seconds = {LOGGED: _seconds(lambda: snapshot(state.weights, cohort), device)}
    seconds |= {name: _seconds(lambda name=name: measure_stack(subject, [name]), device) for name in MEASURES}  # type: ignore[misc]
    for name in (one for one in AFTERWARDS if "@" not in one):
        seconds[name] = _seconds(lambda name=name: _whole_run(subject, spec, name), device)  # type: ignore[misc]
    made_with = provenance(device)
    in_steps = {name: found / step for name, found in seconds.items()}
    return Costs(in_steps, f"{made_with['device']}, {count} runs at once", made_with)


def _whole_run(subject: RunStack, spec: RunSpec, name: str) -> None:
    """As many checkpoints of one run as there are runs in the stack, of which each looks back at the ten before it."""
    flat = torch.cat([value.flatten(1) for value in subject.weights.values()], dim=1)
    rows = flat.repeat(1 + WINDOW // len(flat) + 1, 1)[: len(flat) + WINDOW]
    measure_whole_run(spec, {step: row * (1 + step / 1000) for step, row in enumerate(rows)}, [name], "a run")


def _seconds(work: Callable[[], object], device: str) -> float:
    """The shortest of a few times that it takes."""
    found = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return min(found)


def save_costs(costs: Costs, path: Path) -> None:
    """Write costs as JSON."""
    write_json(path, vars(costs))


def read_costs(path: Path) -> Costs | None:
    """The costs in a file that `save_costs` wrote; None if there is no such file.

    >>> read_costs(Path("nowhere.json"))
    """
    try:
        found: Mapping[str, dict[str, str]] = read_json(path, dict, follow_links=True)
        steps = {str(name): float(value) for name, value in found["steps"].items()}
        return Costs(steps, str(found["place"]), dict(found["made_with"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the costs in {named(path)} cannot be read: {error}") from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the costs of all signals, and write them."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.signals.costs", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where to write: costs.json beside the records")
    parser.add_argument("--slots", type=int, help="runs at once; as many as are measured together if not given")
    given = parser.parse_args(arguments)
    save_costs(measure_costs(device="cuda" if torch.cuda.is_available() else "cpu", slots=given.slots), given.out)


if __name__ == "__main__":
    main()
