"""Plans, kept beside their runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.errors import InputError
from grokscope.runs import Store
from grokscope.runs.plans import encode_plan, keep_plan, kept_plan, kept_plans
from grokscope.specs import Plan
from tiny_runs import CHILD, TINY, WIDE


@pytest.mark.parametrize(
    "plan",
    [
        Plan("x", (TINY, CHILD)),
        Plan("a b", (WIDE,), "cpu", "forks", 7, ("fsd@sum",), ("rank",), ("trig@final",), (WIDE.content_hash,), True),
    ],
)
def test_a_plan_in_brief_is_the_same_plan(plan: Plan, tmp_path: Path) -> None:
    assert Plan.from_json(encode_plan(plan).decode()) == plan
    store = Store(tmp_path)
    keep_plan(plan, store)
    keep_plan(replace(plan, out="elsewhere"), store)
    assert kept_plans(store) == [replace(plan, out=str(tmp_path))]


def test_a_plan_is_read_by_its_name_wherever_its_store_lies_by_now(tmp_path: Path) -> None:
    plan = Plan("elsewhere", (TINY, CHILD))
    name = keep_plan(plan, Store(tmp_path / "one"))
    (tmp_path / "one").rename(tmp_path / "two")
    assert kept_plan(name, Store(tmp_path / "two")) == replace(plan, out=str(tmp_path / "two"))


def test_the_same_plan_is_written_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = tmp_path / "plans" / f"{keep_plan(Plan('x', (TINY,)), store)}.json"
    before = path.stat().st_ino
    keep_plan(Plan("y", (TINY,)), store)
    assert path.stat().st_ino == before


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"{}"])
def test_a_damaged_plan_is_named(content: bytes, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("plans/0123456789abcdef.json", content)
    whole = keep_plan(Plan("x", (TINY,)), store)
    with pytest.raises(InputError, match=r"the plan 'plans/0123456789abcdef\.json' of .* cannot be read"):
        kept_plan("0123456789abcdef", store)
    reported: list[str] = []
    assert kept_plans(store, reported.append) == [kept_plan(whole, store)]
    (sentence,) = reported
    assert "plans/0123456789abcdef.json" in sentence


def test_a_plan_under_another_name_than_its_own_is_damaged(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = tmp_path / "plans" / f"{keep_plan(Plan('x', (TINY,)), store)}.json"
    path.write_bytes(encode_plan(Plan(".", (WIDE,))))
    assert kept_plans(store) == []
    keep_plan(Plan("x", (TINY,)), store)
    assert kept_plans(store) == [Plan(str(tmp_path), (TINY,))], "the same plan is written again"
