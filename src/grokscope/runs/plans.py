"""Plans, kept beside their runs: a sweep is continued from its own folder, and workers read them there."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from grokscope.errors import InputError, require, shown
from grokscope.files import DamagedError, named, read_given
from grokscope.runs.store import Store
from grokscope.specs import Plan

__all__ = ["encode_plan", "keep_plan", "kept_plan", "kept_plans", "read_plan", "read_plans"]

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
    name = _name_of(content)
    place = f"{FOLDER}/{name}.json"
    if _is_missing(place, content, store):
        store.put(place, content)
    return name


def _is_missing(place: str, content: bytes, store: Store) -> bool:
    try:
        return store.get(place) != content
    except DamagedError:  # written anew: its name says what it was
        return True


def kept_plan(name: str, store: Store) -> Plan:
    """The plan of a store with this name, for the place where the store lies by now; one that is damaged is named."""
    place = f"{FOLDER}/{name}.json"
    try:
        content = store.get(place) or b""
        plan = Plan.from_json(content)
        require(_name_of(content) == name, "its content is not what its name says")
    except InputError as error:
        raise DamagedError(f"the plan {shown(place)} of {shown(store.address)} cannot be read: {error}") from None
    return replace(plan, out=store.address)


def kept_plans(store: Store, report: Callable[[str], None] = lambda sentence: None) -> list[Plan]:
    """Every plan of a store; one that is damaged is left out and reported.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.runs.store import Store
    >>> with TemporaryDirectory() as folder:
    ...     kept_plans(Store(folder))
    []
    """
    return [plan for plan in read_plans(store, report).values() if plan is not None]


def read_plans(store: Store, report: Callable[[str], None]) -> dict[str, Plan | None]:
    """Every plan of a store by the name of its file; None for one that is damaged, which is reported."""
    found: dict[str, Plan | None] = {}
    for file in store.list_files(FOLDER):
        try:
            found[file] = kept_plan(file.removesuffix(".json"), store)
        except DamagedError as error:
            found[file] = None
            report(str(error))
    return found


def read_plan(path: Path) -> Plan:
    """The plan in a file."""
    return Plan.from_json(read_given(path, f"the plan {named(path)}"))


def _name_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def encode_plan(plan: Plan) -> bytes:
    """A plan as JSON without what is a default: of a run little more than its seed is left."""
    rest = replace(plan, runs=plan.runs[:1], made_for=()).to_short_dict()
    facts = {**rest, "runs": [spec.to_short_dict() for spec in plan.runs]}
    if plan.made_for:
        facts["made_for"] = [[one.to_dict() for one in studies] for studies in plan.made_for]
    return (json.dumps(facts, sort_keys=True, separators=(",", ":")) + "\n").encode()
