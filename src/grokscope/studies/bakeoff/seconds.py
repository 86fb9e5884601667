"""What a step of one run costs, kept in a file with the records of a bake-off; `speed` measures it."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import named, read_json, write_atomically

__all__ = ["FILE", "Speed", "read_speed", "save_speed"]

FILE = "speed.json"


@dataclass(frozen=True)
class Speed:
    """Seconds by configuration, and where they were measured."""

    seconds_per_step: dict[str, float]
    """Seconds of one optimiser step of one run in a full stack, by configuration; evaluations are not counted."""
    place: str
    """The device, and how many runs shared it."""
    made_with: dict[str, str] = field(default_factory=dict)
    """Commit, device and versions."""


def save_speed(speed: Speed, path: Path) -> None:
    """Write a speed as JSON."""
    write_atomically(path, (json.dumps(vars(speed), indent=1) + "\n").encode())


def read_speed(path: Path) -> Speed | None:
    """The speed in a file that `save_speed` wrote; None if there is no such file."""
    try:
        found = read_json(path, dict, follow_links=True)
        seconds = {str(name): float(x) for name, x in found["seconds_per_step"].items()}
        return Speed(seconds, str(found["place"]), dict(found.get("made_with", {})))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the speed in {named(path)} cannot be read: {error}") from None
