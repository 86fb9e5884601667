"""What a step of one run costs with each update on, kept beside the records; `speed` measures it."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import named, read_json, write_atomically
from grokscope.specs import RunSpec
from grokscope.stats import Estimate
from grokscope.studies import Measured, Quantity, Records, Selection
from grokscope.studies.steering.quantities import outcome_of
from grokscope.training import cohort_key

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

    def __repr__(self) -> str:
        return f"<Speed of {len(self.seconds_per_step)} updates on {self.place}>"

    def of(self, spec: RunSpec) -> float | None:
        """Seconds of a step of such a run; None where that was not measured."""
        return self.seconds_per_step.get(update_of(spec))


def update_of(spec: RunSpec) -> str:
    """What decides how long a step takes: the stack's model and batch, the optimiser, and what is done to gradients.

    Tasks that share a stack share it, for they are padded to one size.

    >>> update_of(RunSpec("add_mod97")), update_of(RunSpec("S5")) == update_of(RunSpec("add_mod97"))
    ('2 layers of 128 for 136 classes, batch 512, adamw, plain', True)
    """
    training, architecture, key = spec.training, spec.architecture, cohort_key(spec)
    width = architecture.mlp_width if architecture.kind == "mlp" else architecture.width
    model = f"{architecture.layers} layers of {width} for {key.sizes.classes} classes, batch {key.batch}"
    return f"{model}, {training.optimizer}, {training.gradient}"


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


def seconds(experiment: str, name: str, speed: Speed | float) -> Quantity:
    """The median device-seconds to stable generalisation of one run in a full stack; a number is those of a step."""
    runs = Selection((experiment,), configuration=name)
    return Quantity("device-seconds to stable generalisation", runs, _seconds, options={"speed": speed})


def _seconds(records: Records, speed: Speed | float) -> Measured:
    per_step = speed.of(next(iter(records.values())).spec) if isinstance(speed, Speed) else speed
    found = outcome_of(records)
    steps = found.parts["steps"]
    if per_step is None or not isinstance(steps, Estimate):
        return Measured.lacking(0, 1, "measured seconds of a step")
    value, low, high = (end * per_step for end in (steps.value, steps.low, steps.high))
    return Measured.of(Estimate(value, low, high, steps.items), n=len(records))
