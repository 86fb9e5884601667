"""`grokscope fork`: a run continued with something changed."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_commands import TINY, rejected, words

import grokscope
from grokscope.cli import run
from grokscope.runs import run_name
from grokscope.specs import Fork

pytestmark = pytest.mark.usefixtures("here", "in_process")


def test_forks_are_stored_with_their_parent(capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    capsys.readouterr()
    assert run(words("fork runs add_mod7_s0 --at 5 --weight-decay 1 2 --steps 10")) == 0
    assert capsys.readouterr().out.count("at step 10, λ = ") == 2
    specs = {row.spec.training.weight_decay: row.spec for row in grokscope.open("runs") if row.spec.fork}
    assert specs.keys() == {1.0, 2.0}
    assert specs[2.0] == replace(
        TINY, fork=Fork(TINY.content_hash, 5), training=replace(TINY.training, weight_decay=2.0, steps=10)
    )


def test_any_setting_of_training_can_be_changed() -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    assert run(words("fork runs add_mod7_s0 --at 5 --learning-rate 0.01 --gradient orthogonal --keep none")) == 0
    (found,) = [one for one in grokscope.open("runs") if one.spec.fork]
    assert found.spec.training == replace(TINY.training, learning_rate=0.01, gradient="orthogonal")
    assert not found.steps


def test_a_fork_keeps_what_is_not_changed(here: Path) -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    assert run(words(f"fork runs {TINY.content_hash} --at 5")) == 0
    assert run(words(f"fork runs {TINY.content_hash} --at 5 --reset-moments")) == 0
    kept, reset = (replace(TINY, fork=Fork(TINY.content_hash, 5, moments)) for moments in ("kept", "reset"))
    end = {spec: (here / "runs" / run_name(spec) / "state-00000008.safetensors") for spec in (TINY, kept, reset)}
    assert end[kept].read_bytes() == end[TINY].read_bytes()
    assert end[reset].read_bytes() != end[TINY].read_bytes()


def test_bad_input(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --seeds 0:2 --spec tiny.json --out runs"))
    for line, sentence in [
        ("runs add_mod7_s3 --at 4", "there is no run 'add_mod7_s3'"),
        ("runs add_mod7_s0 --at 8", "the fork's step must lie before the last step 8, got 8"),
        ("runs add_mod7_s0 --at -1", "the fork's step must be at least 0, got -1"),
        ("runs add_mod7_s0 --at 9 --steps 20", f"{run_name(TINY)} has states from step 0 to 8, got 9"),
        ("runs add_mod7_s0 --at 4 --steps 0", "steps must be at least 1, got 0"),
        ("runs add_mod7_s0 --at 4 --weight-decay -1", "weight_decay must be at least 0, got -1.0"),
        ("runs add_mod7_s0 --at 4 --out runs", "`grokscope fork` has no option '--out'"),
    ]:
        rejected(["fork", *words(line)], sentence, here, capsys)
