"""What a step of one run costs with each update on, kept beside the records; `speed` measures it."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import named, read_json, write_atomically
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.stats import Estimate, kaplan_meier
from grokscope.studies import Measured, Quantity, Records, Selection
from grokscope.studies.steering.quantities import stable_time

__all__ = ["FILE", "Speed", "read_speed", "save_speed", "seconds", "update_of"]

FILE = "speed.json"  # beside the records


@dataclass(frozen=True)
class Speed:
    """Seconds by update and model, and where they were measured."""

    seconds_per_step: dict[str, float] = field(default_factory=dict)
    """Seconds of one optimiser step of one run in a full stack, by `update_of`."""
    place: str = ""
    """The device, and how many runs shared it."""
    made_with: dict[str, str] = field(default_factory=dict)
    """Commit, device and versions."""

    def of(self, spec: RunSpec) -> float | None:
        """Seconds of a step of such a run; None where that was not measured."""
        return self.seconds_per_step.get(update_of(spec))


def update_of(spec: RunSpec) -> str:
    """What decides how long a step takes: optimiser, what is done to gradients, model and task.

    >>> update_of(RunSpec("add_mod97"))
    'add_mod97, 2 layers of 128, adamw, plain'
    """
    training, architecture = spec.training, spec.architecture
    width = architecture.mlp_width if architecture.kind == "mlp" else architecture.width
    model = f"{architecture.layers} layers of {width}"
    return f"{spec.task}, {model}, {training.optimizer}, {training.gradient}"


def save_speed(speed: Speed, path: Path) -> None:
    """Write a speed as JSON."""
    write_atomically(path, (json.dumps(vars(speed), indent=1, ensure_ascii=False) + "\n").encode())


def read_speed(path: Path) -> Speed | None:
    """The speed in a file that `save_speed` wrote; None if there is no such file.

    >>> read_speed(Path("nowhere.json"))
    """
    try:
        found = read_json(path, dict, follow_links=True)
        times = {str(name): float(time) for name, time in found["seconds_per_step"].items()}
        return Speed(times, str(found["place"]), dict(found["made_with"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the speed in {named(path)} cannot be read: {error}") from None


def seconds(experiment: str, name: str, seconds_per_step: float) -> Quantity:
    """The median device-seconds to stable generalisation of one run in a full stack."""
    return Quantity(
        "device-seconds to stable generalisation",
        Selection((experiment,), configuration=name),
        _seconds,
        options={"seconds_per_step": seconds_per_step},
    )


def _seconds(records: Records, seconds_per_step: float) -> Measured:
    waits, reached = zip(*map(_wait, records.values()), strict=True)
    steps = kaplan_meier(waits, reached).median
    value, low, high = (end * seconds_per_step for end in (steps.value, steps.low, steps.high))
    return Measured.of(Estimate(value, low, high, steps.items), n=len(records))


def _wait(record: RunRecord) -> tuple[float, bool]:
    time, budget = stable_time(record), float(record.spec.training.steps)
    return min(time, budget), time <= budget
