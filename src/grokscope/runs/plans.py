"""Plans, kept beside their runs: a sweep is continued from its own folder, and workers read them there."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import named
from grokscope.runs.store import Store
from grokscope.specs import Plan

__all__ = ["encode_plan", "keep_plan", "kept_plan", "kept_plans", "read_plan"]

FOLDER = "plans"
HERE = "."


def keep_plan(plan: Plan, store: Store) -> str:
    """Keep a plan in its store, under the hash of its content, which is returned; the same plan is kept once.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.runs.store import Store
    >>> from grokscope.specs import RunSpec
    >>> with TemporaryDirectory() as folder:
    ...     name = keep_plan(Plan(folder, (RunSpec("add_mod23"),)), Store(folder))
    ...     len(name), len(kept_plans(Store(folder)))
    (16, 1)
    """
    content = encode_plan(replace(plan, out=HERE))
    name = hashlib.sha256(content).hexdigest()[:16]
    place = f"{FOLDER}/{name}.json"
    if store.get(place) != content:
        store.put(place, content)
    return name


def kept_plan(name: str, store: Store) -> Plan:
    """The plan of a store with this name, for the place where the store lies by now; one that is damaged is named."""
    place = f"{FOLDER}/{name}.json"
    try:
        return replace(Plan.from_json((store.get(place) or b"").decode()), out=store.address)
    except (UnicodeDecodeError, InputError) as error:
        raise InputError(f"the plan {place} of {store.address} cannot be read: {error}") from None


def kept_plans(store: Store) -> list[Plan]:
    """Every plan of a store.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.runs.store import Store
    >>> with TemporaryDirectory() as folder:
    ...     kept_plans(Store(folder))
    []
    """
    return [kept_plan(name.removesuffix(".json"), store) for name in store.list_files(FOLDER)]


def read_plan(path: Path) -> Plan:
    """The plan in a file."""
    try:
        return Plan.from_json(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the plan {named(path)} cannot be read: {error}") from None


def encode_plan(plan: Plan) -> bytes:
    """A plan as JSON without what is a default: of a run little more than its seed is left."""
    rest = replace(plan, runs=plan.runs[:1], made_for=()).to_short_dict()
    facts = {**rest, "runs": [spec.to_short_dict() for spec in plan.runs]}
    if plan.made_for:
        facts["made_for"] = [[one.to_dict() for one in studies] for studies in plan.made_for]
    return (json.dumps(facts, sort_keys=True, separators=(",", ":")) + "\n").encode()
