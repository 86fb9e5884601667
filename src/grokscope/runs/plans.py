"""Plans, kept beside their runs: whoever continues a sweep needs to remember nothing."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from grokscope.errors import InputError
from grokscope.runs.store import Store
from grokscope.files import named
from grokscope.specs import Plan

__all__ = ["brief", "read_plan", "remember", "remembered"]

FOLDER = "plans"
HERE = "."


def remember(plan: Plan, store: Store) -> None:
    """Keep a plan in its store, under the hash of its content; the same plan is kept once."""
    content = brief(replace(plan, out=HERE))
    store.put(f"{FOLDER}/{hashlib.sha256(content).hexdigest()[:16]}.json", content)


def remembered(store: Store) -> list[Plan]:
    """Every plan of a store, wherever that lies by now; one that cannot be read is named."""
    found = []
    for name, content in sorted(store.kept(FOLDER).items()):
        try:
            found.append(replace(Plan.from_json(content.decode()), out=store.address))
        except (UnicodeDecodeError, InputError) as error:
            raise InputError(f"the plan {FOLDER}/{name} of {store.address} cannot be read: {error}") from None
    return found


def read_plan(path: Path) -> Plan:
    """The plan in a file."""
    try:
        return Plan.from_json(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the plan {named(path)} cannot be read: {error}") from None


def brief(plan: Plan) -> bytes:
    """A plan as JSON without what is a default: of a run little more than its seed is left."""
    runs = [spec.to_short_dict() for spec in plan.runs]
    facts = {**replace(plan, runs=plan.runs[:1]).to_short_dict(), "runs": runs}
    return (json.dumps(facts, sort_keys=True, separators=(",", ":")) + "\n").encode()
