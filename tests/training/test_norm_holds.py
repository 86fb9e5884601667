"""Norms that are held: after every step, whatever stands beside, resumed or not, by kernels as by the reference."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from plain_runs import SMALL, TWO_LAYERS, fresh, mixed_runs, padding_in, small_run

from grokscope.errors import InputError
from grokscope.jobs import Stopped, run_all, state_at
from grokscope.model import Layout, layout_of, padded_sizes
from grokscope.runs import Store, run_name
from grokscope.specs import Cadence, Fork, NormHold, RunSpec
from grokscope.tasks import named_task
from grokscope.training import Cohort, State, advance, initial_state
from grokscope.training.norm_holds import hold_directions
from interpreted import kinds

STEPS = 12
RUN = small_run("add_mod7", 0, TWO_LAYERS, steps=STEPS, learning_rate=0.01, weight_decay=5.0)
HOLDS = {
    "all at its own": NormHold(start=3),
    "all led to a level": NormHold(start=2, level=3.0, over=5),
    "all set to a level": NormHold(start=2, level=3.0),
    "a block": NormHold(("blocks.1",), start=2),
    "a branch led down": NormHold(("blocks.0.mlp",), start=1, level=0.5, over=6),
    "two parts, let go": NormHold(("embed", "unembed"), start=2, end=7),
    "the matrices": NormHold(("matrices",), start=2, level=5.0),
    "a floor": NormHold(level=8.0, side="at_least"),
    "a ceiling": NormHold(("unembed",), level=1.0, side="at_most"),
    "raised along a random direction": NormHold(start=2, level=30.0, along="random"),
    "parts led along random directions": NormHold(("embed",), start=1, level=25.0, over=6, along="random"),
    "an unreachable level": NormHold(("blocks.0", "unembed"), start=2, along="random"),
}
RAISED = HOLDS["raised along a random direction"]
holds = pytest.mark.parametrize("hold", HOLDS.values(), ids=HOLDS.keys())


def layout(spec: RunSpec) -> Layout:
    return layout_of(spec.architecture, padded_sizes(named_task(spec.task)))


def norm(spec: RunSpec, flat: torch.Tensor, part: str) -> float:
    """A part's norm, its parameters joined."""
    own = layout(spec)
    views = own.views(flat[None])
    return float(torch.cat([views[name].flatten() for name in own.part(part)]).norm())


def trained_step_by_step(spec: RunSpec) -> list[torch.Tensor]:
    cohort = Cohort([spec])
    state, found = initial_state(cohort), []
    found.append(state.weights[0].clone())
    for _ in range(spec.training.steps):
        advance(state, cohort, 1, False)
        found.append(state.weights[0].clone())
    return found


def moved(weights: torch.Tensor, u: torch.Tensor, target: float) -> torch.Tensor:
    """w + a u with a the root of ‖w‖² + 2a⟨w, u⟩ + a² = target² nearest to 0; its real part where there is none."""
    roots = np.roots([1.0, 2 * float(weights @ u), float(weights @ weights) - target**2])
    return weights + float(roots[np.abs(roots).argmin()].real) * u


def by_hand(spec: RunSpec) -> list[torch.Tensor]:
    """Plain training by single steps, each followed by a rescaling from the definition."""
    hold = spec.norm_hold
    assert hold is not None
    cohort = Cohort([replace(spec, norm_hold=None)])
    state, own = initial_state(cohort), layout(spec)
    weights, begins = [state.weights[0].clone()], {}
    for t in range(spec.training.steps + 1):
        if t > 0:
            advance(state, cohort, 1, False)
        for part in hold.parts:
            now = norm(spec, state.weights[0], part)
            if t == hold.start:
                begins[part] = now
            if t > hold.start and t <= (hold.end or t):
                n0 = begins[part]
                level = n0 if hold.level is None else hold.level
                left = max(0.0, 1 - (t - hold.start) / hold.over) if hold.over else 0.0
                factor = level * (n0 / level) ** left / now
                factor = {"both": factor, "at_least": max(1.0, factor), "at_most": min(1.0, factor)}[hold.side]
                views = [own.views(state.weights)[name] for name in own.part(part)]
                if hold.along == "weights":
                    for view in views:
                        view.mul_(factor)
                else:
                    directions = own.views(hold_directions([spec], own))
                    u = torch.cat([directions[name].flatten() for name in own.part(part)])
                    after = moved(torch.cat([view.flatten() for view in views]), u, factor * now)
                    for view, new in zip(views, after.split([view.numel() for view in views]), strict=True):
                        view.copy_(new.view_as(view))
        if t > 0:
            weights.append(state.weights[0].clone())
    return weights


@holds
def test_training_is_plain_training_with_a_rescaling_after_every_step(hold: NormHold) -> None:
    spec = replace(RUN, norm_hold=hold)
    for ours, expected in zip(trained_step_by_step(spec), by_hand(spec), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-8, atol=1e-9)


def test_the_norm_is_held_after_each_step_and_nothing_else_is() -> None:
    spec = replace(RUN, norm_hold=NormHold(("blocks.0", "unembed"), start=4))
    weights, free = trained_step_by_step(spec), trained_step_by_step(replace(spec, norm_hold=None))
    for part in ("blocks.0", "unembed"):
        assert [norm(spec, one, part) for one in weights[4:]] == pytest.approx(
            [norm(spec, weights[4], part)] * 9, 1e-12
        )
    assert abs(norm(spec, weights[-1], "embed") - norm(spec, weights[4], "embed")) > 1e-3
    assert all(torch.equal(a, b) for a, b in zip(weights[:5], free[:5], strict=True))
    assert not torch.equal(weights[5], free[5])


def test_along_a_random_direction_the_norm_rises_to_its_level_and_is_never_lowered_to_one() -> None:
    raised = trained_step_by_step(replace(RUN, norm_hold=RAISED))
    assert [norm(RUN, one, "all") for one in raised[3:]] == pytest.approx([30.0] * 10, 1e-12)
    free = trained_step_by_step(RUN)
    # From the same state, what the hold adds to a free step is along u.
    added = raised[3] - free[3]
    held = replace(RUN, norm_hold=RAISED)
    u = hold_directions([held], layout(held))[0]
    torch.testing.assert_close(added, (added @ u) * u, rtol=0, atol=1e-12)
    low = NormHold(start=2, level=0.1, along="random")
    lowered = trained_step_by_step(replace(RUN, norm_hold=low))
    assert norm(RUN, lowered[3], "all") > 0.99 * norm(RUN, free[3], "all")
    assert abs(float(lowered[3] @ u)) < 1e-12


def test_directions_are_unit_vectors_of_the_run_alone_and_zero_on_padding() -> None:
    hold = NormHold(("embed", "unembed"), along="random")
    runs = [replace(run, norm_hold=hold) for run in mixed_runs(SMALL)]
    _, cohort = fresh(runs)
    found = hold_directions(cohort.specs, cohort.layout)
    views = cohort.layout.views(found)
    for slot, run in enumerate(runs):
        assert not padding_in(cohort, found, slot).any()
        for part in hold.parts:
            own = torch.cat([views[name][slot].flatten() for name in cohort.layout.part(part)])
            assert float(own.norm()) == pytest.approx(1, 1e-12)
        assert torch.equal(hold_directions([run], cohort.layout)[0], found[slot])
    other = hold_directions([replace(runs[0].with_seed(9), norm_hold=hold)], cohort.layout)[0]
    assert abs(float(other @ found[0])) < 0.3  # two unit vectors, of 2 in all


def test_a_hold_that_never_acts_leaves_every_bit() -> None:
    idle = [
        NormHold(level=1e-6, side="at_least"),
        NormHold(level=1e6, side="at_most"),
        NormHold(start=STEPS - 1),
        NormHold(level=1e-6, side="at_least", along="random"),
    ]
    plain = trained_step_by_step(replace(RUN, precision="float32"))
    for hold in (*idle[:2], idle[3]):
        held = trained_step_by_step(replace(RUN, precision="float32", norm_hold=hold))
        assert all(torch.equal(*pair) for pair in zip(held, plain, strict=True))
    late = trained_step_by_step(replace(RUN, precision="float32", norm_hold=idle[2]))
    assert all(torch.equal(*pair) for pair in zip(late[:-1], plain[:-1], strict=True))


def test_held_parts_that_are_held_at_other_times_do_not_disturb_each_other() -> None:
    specs = [replace(RUN.with_seed(seed), norm_hold=NormHold(("embed",), start=seed)) for seed in range(4)]
    cohort = Cohort(specs)
    state = initial_state(cohort)
    advance(state, cohort, STEPS, False)
    for slot, spec in enumerate(specs):
        torch.testing.assert_close(state.weights[slot], trained_step_by_step(spec)[-1], rtol=1e-8, atol=1e-9)


def test_runs_that_hold_other_parts_or_otherwise_share_no_stack() -> None:
    with pytest.raises(InputError, match="must share architecture, sizes and precision"):
        Cohort([RUN, replace(RUN, norm_hold=NormHold(("embed",)))])
    with pytest.raises(InputError, match="must share architecture, sizes and precision"):
        Cohort([replace(RUN, norm_hold=NormHold(along=along)) for along in ("weights", "random")])


@pytest.mark.parametrize("stop_at", [1, 3, 4, 5])
@pytest.mark.parametrize("hold", [HOLDS["all led to a level"], NormHold(("embed", "norms"), start=5), RAISED])
@pytest.mark.usefixtures("quick_disk")
def test_a_held_run_survives_any_interruption_to_the_last_bit(hold: NormHold, stop_at: int, tmp_path: Path) -> None:
    spec = replace(RUN, norm_hold=hold, checkpoints=Cadence(4), measurements=Cadence(2), precision="float32")
    whole, other, calls = Store(tmp_path / "whole"), Store(tmp_path / "other"), iter(range(100))
    run_all([spec], whole, compiled=False)
    with pytest.raises(Stopped):
        run_all([spec], other, compiled=False, should_stop=lambda: next(calls) == stop_at)
    run_all([spec], other, compiled=False)
    folders = [store.find(run_name(spec)) for store in (whole, other)]
    assert folders[0].path.joinpath("log.jsonl").read_bytes() == folders[1].path.joinpath("log.jsonl").read_bytes()
    ends = [state_at(one, STEPS, store, compiled=False) for one, store in zip(folders, (whole, other), strict=True)]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


@pytest.mark.usefixtures("quick_disk")
def test_a_fork_holds_from_its_own_norm_and_a_control_goes_on_with_its_parents(tmp_path: Path) -> None:
    store = Store(tmp_path)
    parent = replace(RUN, norm_hold=NormHold(("embed",), start=2), checkpoints=Cadence(4, at=(8,)))
    kept = replace(parent, fork=Fork(parent.content_hash, 8))
    other = replace(parent, norm_hold=NormHold(start=8), fork=Fork(parent.content_hash, 8))
    free = replace(parent, norm_hold=None, fork=Fork(parent.content_hash, 8))
    run_all([parent], store, compiled=False)
    run_all([kept, other, free], store, compiled=False)
    states = {
        name: state_at(store.find(run_name(spec)), STEPS, store, compiled=False)
        for name, spec in {"parent": parent, "kept": kept, "other": other, "free": free}.items()
    }
    begins = state_at(store.find(run_name(parent)), 8, store, compiled=False)["weights"]
    assert torch.equal(states["kept"]["weights"], states["parent"]["weights"])
    assert norm(RUN, states["other"]["weights"], "all") == pytest.approx(norm(RUN, begins, "all"), rel=1e-12)
    assert norm(RUN, states["free"]["weights"], "embed") != pytest.approx(norm(RUN, begins, "embed"), rel=1e-4)
    assert "anchors" in states["kept"]
    assert "anchors" not in states["free"]


@pytest.mark.parametrize(
    ("hold", "sentence"),
    [
        (NormHold(("blocks.7",)), "this model has no part 'blocks.7'; did you mean 'blocks.1'"),
        (NormHold(("all", "embed")), "the parts of a norm hold must not overlap"),
        (NormHold(("blocks.0", "blocks.0.mlp")), "must not overlap"),
        (NormHold(("matrices", "unembed.W_U")), "must not overlap"),
    ],
)
def test_parts_that_the_model_does_not_have_or_that_overlap_are_rejected(
    hold: NormHold, sentence: str, tmp_path: Path
) -> None:
    from grokscope.jobs.preparation import reject_impossible

    with pytest.raises(InputError, match=sentence):
        reject_impossible([replace(RUN, norm_hold=hold)], Store(tmp_path), "cpu")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"parts": ()}, "parts must be different names"),
        ({"parts": ("embed", "embed")}, "parts must be different names"),
        ({"parts": ("embed", "unembed"), "level": 2.0}, "level is the norm of one part"),
        ({"over": 5}, "over needs a level"),
        ({"level": 0.0}, "level must be positive, got 0"),
        ({"start": 5, "end": 5}, "the hold's end must lie after its start 5, got 5"),
    ],
)
def test_a_hold_that_makes_no_sense_is_rejected(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        NormHold(**fields)


def test_a_run_rejects_a_hold_that_never_begins_or_that_a_fork_contradicts() -> None:
    with pytest.raises(InputError, match="start must lie before the last step 12, got 12"):
        replace(RUN, norm_hold=NormHold(start=STEPS))
    with pytest.raises(InputError, match="must leave its own norm free, got 'frozen'"):
        replace(RUN, fork=Fork(RUN.content_hash, 2, norm="frozen"), norm_hold=NormHold(start=3))
    fork = replace(RUN, fork=Fork(RUN.content_hash, 4), norm_hold=NormHold(start=3))
    from grokscope.training.norm_holds import reject_impossible_hold

    with pytest.raises(InputError, match="start must not lie before the fork 4, got 3"):
        reject_impossible_hold(fork, RUN)


def test_a_run_without_a_hold_is_named_as_before() -> None:
    assert "norm_hold" not in RunSpec().to_short_dict()


@pytest.mark.parametrize(
    "name", kinds(["all led to a level", "two parts, let go", "a floor", "an unreachable level"], ["two parts, let go"])
)
def test_kernels_hold_as_the_reference_does(name: str) -> None:
    from grokscope.training.cohort import OLDEST_TRITON

    pytest.importorskip("triton", OLDEST_TRITON, "Triton comes with torch's CUDA builds")
    from grokscope.training.kernel_trainer import KernelTrainer
    from grokscope.training.loop import arithmetic

    hold = HOLDS[name]
    hold = replace(hold, start=min(hold.start, 1), end=hold.end and 2)
    runs = [replace(run, norm_hold=hold) for run in mixed_runs(SMALL)[:2]]

    def begin() -> tuple[Cohort, State]:
        cohort = Cohort(runs, "cuda" if torch.cuda.is_available() else "cpu")
        return cohort, initial_state(cohort)

    (cohort, ours), (other, expected) = begin(), begin()
    with arithmetic("float64"):
        KernelTrainer(ours, cohort).chunk(3)
    advance(expected, other, 3, compiled=False)
    torch.testing.assert_close(ours.weights, expected.weights, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(ours.anchors, expected.anchors, rtol=1e-12, atol=0)
