from collections import Counter
from dataclasses import fields, replace
from functools import lru_cache
from itertools import permutations

import numpy as np
import pytest
import torch
from plain_runs import ARCHITECTURES, TWO_LAYERS, fresh, small_run
from torch import Tensor
from torch.nn.functional import cross_entropy

from grokscope.activations import RunStack, subject_of
from grokscope.errors import InputError
from grokscope.measures.mode_choice import key_modes, top_modes
from grokscope.measures.projections import cube_part
from grokscope.measures.restricted import (
    excluded_loss_by_mode,
    filtered_loss,
    variant_loss,
)
from grokscope.measures.scores import Scores
from grokscope.measures.variants import VARIANTS
from grokscope.specs import Architecture
from grokscope.tasks import named_task
from grokscope.training import advance
from measured_stacks import module_of, on_cuda, stack_of

SITES = {"one_layer": "blocks.0", "two_layers": "blocks.1", "nanda": "blocks.1"}


def trained(
    task: str, runs: int = 2, steps: int = 25, architecture: Architecture = TWO_LAYERS, shuffled: bool = False
) -> RunStack:
    return _trained(task, runs, steps, architecture, shuffled)


@lru_cache
def _trained(task: str, runs: int, steps: int, architecture: Architecture, shuffled: bool) -> RunStack:
    return stack_of(
        [small_run(task, seed, architecture, shuffled_labels=shuffled, learning_rate=0.003) for seed in range(runs)],
        steps,
    )


def plain_logits(subject: RunStack, run: int) -> Tensor:
    with torch.no_grad():
        return module_of(subject, run)(torch.tensor(subject.task.tokens))


def seen(subject: RunStack, run: int, site: str) -> Tensor:
    """What a module of the reference module gives at the last position."""
    values, module = [], module_of(subject, run)
    module.get_submodule(site).register_forward_hook(lambda m, a, out: values.append(out[:, -1].detach()))
    module(torch.tensor(subject.task.tokens))
    return values[0]


def plain_scores(subject: RunStack, run: int, logits: Tensor) -> dict[str, tuple[float, float]]:
    """Scores of logits made by hand, as the least and the most that rounding allows.

    One irrep's character is the same for many classes: which of them has the largest logit is rounding.
    """
    train = subject.is_train[run]
    labels = torch.where(train, subject.labels[run], subject.answers)
    found = {}
    for name, rows in (("", torch.ones_like(train)), ("train_", train), ("validation_", ~train)):
        loss = cross_entropy(logits[rows], labels[rows]).item()
        is_best = logits[rows] > logits[rows].amax(dim=1, keepdim=True) - 1e-9
        may_be_right = is_best.gather(1, labels[rows, None])[:, 0]
        is_right = may_be_right & (is_best.sum(dim=1) == 1)
        found[f"{name}loss"] = (loss, loss)
        found[f"{name}accuracy"] = (is_right.double().mean().item(), may_be_right.double().mean().item())
    return found


def assert_scores(found: Scores, subject: RunStack, logits_of, abs: float = 1e-10) -> None:
    """The scores of every run are those of logits made by hand."""
    for run in range(len(subject)):
        for name, (least, most) in plain_scores(subject, run, logits_of(run)).items():
            assert least - abs <= getattr(found, name)[run].item() <= most + abs, name


def choice(subject: RunStack) -> Tensor:
    """Different modes for each run."""
    modes = torch.zeros(len(subject), len(subject.task.basis().modes), dtype=torch.bool)
    modes[0, 1:3] = True
    modes[1:, 0] = True
    return modes


def waves(subject: RunStack, frequency: int, of: np.ndarray) -> list[Tensor]:
    """u_k and v_k: unit vectors of cos and sin over the inputs."""
    n, found = subject.task.symbols, []
    for wave in (np.cos, np.sin):
        values = torch.from_numpy(wave(2 * np.pi * frequency * of / n))
        found.append(values / values.norm())
    return found


def component(values: Tensor, directions: list[Tensor]) -> Tensor:
    """Σ u uᵀ L."""
    return sum((torch.outer(u, u @ values) for u in directions), torch.zeros_like(values))


def key_part(subject: RunStack, run: int, values: Tensor, modes: Tensor) -> Tensor:
    """The key frequencies of values [inputs, …] as functions of a + b (or a − b)."""
    a, b = subject.task.inputs.T
    of = a - b if subject.task.name.startswith("sub") else a + b
    return sum(
        (component(values, waves(subject, k + 1, of)) for k in modes[run].nonzero()[:, 0].tolist()),
        torch.zeros_like(values),
    )


# Logits.


@pytest.mark.parametrize("task", ["add_mod11", "sub_mod11"])
def test_the_trig_loss_projects_on_waves_of_the_inputs_and_corrects_the_means(task: str) -> None:
    subject = trained(task)
    modes = choice(subject)
    found = variant_loss(subject, "trig", modes)

    def restricted(run: int) -> Tensor:
        logits = plain_logits(subject, run)
        part = key_part(subject, run, logits, modes)
        return part + (logits - part).mean(dim=0)

    assert_scores(found.scores, subject, restricted)
    assert torch.equal(found.loss, found.scores.loss)
    assert torch.equal(found.modes, modes)


@pytest.mark.parametrize("task", ["add_mod11", "sub_mod11"])
def test_the_excluded_loss_removes_them_and_is_scored_on_train(task: str) -> None:
    subject = trained(task)
    modes = choice(subject)
    found = variant_loss(subject, "excluded", modes)

    def excluded(run: int) -> Tensor:
        logits = plain_logits(subject, run)
        return logits - key_part(subject, run, logits, modes)

    assert_scores(found.scores, subject, excluded)
    assert torch.equal(found.loss, found.scores.train_loss)
    # The general function at the logits is the same operation.
    general = filtered_loss(subject, "logits", modes, "remove", scored_on="train")
    assert torch.allclose(general.loss, found.loss, atol=1e-10)


def test_every_mode_has_its_own_excluded_loss() -> None:
    subject = trained("add_mod11")
    for name in ("excluded", "cube_excluded"):
        found = excluded_loss_by_mode(subject, name)
        assert found.loss.shape == (2, 5)
        assert torch.equal(found.loss, found.scores.train_loss)
        for k in range(5):
            alone = torch.arange(5)[None] == k
            one = variant_loss(subject, name, alone)
            for f in fields(Scores):
                assert torch.allclose(getattr(found.scores, f.name)[:, k], getattr(one.scores, f.name), atol=1e-12)
            assert torch.equal(found.modes[:, k], alone.expand(2, -1))
    with pytest.raises(InputError, match="'excluded' or of 'cube_excluded', got 'trig'"):
        excluded_loss_by_mode(subject, "trig")


def test_cubes_of_addition_are_cosines_of_a_plus_b_minus_c() -> None:
    subject, p = trained("add_mod11"), 11
    modes = choice(subject)
    a, b = subject.task.inputs.T
    cubes = [np.cos(2 * np.pi * k * (a[:, None] + b[:, None] - np.arange(p)) / p) for k in range(1, 6)]
    cubes = [torch.from_numpy(cube / np.linalg.norm(cube)) for cube in cubes]

    def part(run: int) -> Tensor:
        logits = plain_logits(subject, run)
        return sum((logits * cubes[k]).sum() * cubes[k] for k in modes[run].nonzero()[:, 0].tolist())

    kept, removed = (variant_loss(subject, f"cube_{name}", modes) for name in ("restricted", "excluded"))
    assert_scores(kept.scores, subject, part)
    assert_scores(removed.scores, subject, lambda run: plain_logits(subject, run) - part(run))
    assert torch.equal(kept.loss, kept.scores.loss)
    assert torch.equal(removed.loss, removed.scores.train_loss)


def symmetric_three() -> tuple[list[np.ndarray], np.ndarray]:
    """Permutation matrices of S3 in lexicographic order, and products by multiplying them."""
    matrices = [np.eye(3)[list(image)].T for image in permutations(range(3))]
    table = np.array(
        [[next(i for i, m in enumerate(matrices) if (x @ y == m).all()) for y in matrices] for x in matrices]
    )
    return matrices, table


def test_cubes_of_a_group_are_characters_of_xyz_inverse() -> None:
    subject, (matrices, table) = trained("S3"), symmetric_three()
    assert (table == subject.task.group.table).all()
    characters = {"(1,1,1)": np.linalg.det, "(2,1)": lambda m: np.trace(m) - 1}
    cubes = []
    for mode in subject.task.basis().modes.modes:
        cube = torch.zeros(36, 6, dtype=torch.float64)
        for x in range(6):
            for y in range(6):
                for z in range(6):
                    product = matrices[x] @ matrices[y] @ matrices[z].T
                    cube[6 * x + y, z] = float(characters[mode.label](product))
        cubes.append(cube / cube.norm())
    for k in range(2):
        modes = torch.arange(2)[None] == k

        def part(run: int, cube: Tensor = cubes[k]) -> Tensor:
            logits = plain_logits(subject, run)
            centred = logits - logits.mean(dim=1, keepdim=True)
            return (centred * cube).sum() * cube

        assert_scores(variant_loss(subject, "cube_restricted", modes).scores, subject, part)
        removed = variant_loss(subject, "cube_excluded", modes).scores
        assert_scores(removed, subject, lambda run, part=part: plain_logits(subject, run) - part(run))


def test_conjugate_irreps_share_one_cube() -> None:
    # Z3's two complex characters are one mode of dimension 2: a cube of A4's is their sum.
    task = named_task("A4")
    basis, group = task.basis(), task.group
    number = next(i for i, mode in enumerate(basis.modes.modes) if len(mode.irreps) == 2)
    # Functions on A4/V4 = Z3 that sum to 0: the cosets of the elements of order 1 and 2.
    normal = np.flatnonzero(np.array(group.orders) <= 2)
    same = np.isin(group.table[:, group.inverse], normal)
    cube = torch.from_numpy(np.where(same, 2.0, -1.0))
    functions = torch.from_numpy(np.random.default_rng(0).normal(size=(12, 12)))
    expected = (functions * cube).sum() / cube.square().sum() * cube
    found = cube_part(functions, basis, torch.arange(len(basis.modes)) == number)
    assert torch.allclose(found, expected, atol=1e-12)


def test_all_modes_restricted_give_the_conditioned_mean() -> None:
    subject = trained("S3")

    def means(run: int) -> Tensor:
        logits = plain_logits(subject, run)
        return torch.stack([logits[subject.answers == s].mean(dim=0) for s in subject.answers])

    everything = torch.ones(1, 2, dtype=torch.bool)
    assert_scores(variant_loss(subject, "trig", everything).scores, subject, means)
    nothing = variant_loss(subject, "excluded", ~everything).scores
    assert_scores(nothing, subject, lambda run: plain_logits(subject, run))


def test_multiplication_keeps_the_mean_of_answer_zero() -> None:
    subject, p = trained("mult_mod11"), 11
    modes, units = choice(subject), [pow(2, k, p) for k in range(p - 1)]
    logarithm = {unit: k for k, unit in enumerate(units)}
    answers = subject.task.answers

    def trig(run: int) -> Tensor:
        logits, out = plain_logits(subject, run), torch.empty(121, p, dtype=torch.float64)
        nonzero, zero = answers != 0, answers == 0
        out[zero] = logits[zero].mean(dim=0)
        own, logs = logits[nonzero], np.array([logarithm[int(s)] for s in answers[nonzero]])
        part = torch.zeros_like(own)
        for k in modes[run].nonzero()[:, 0].tolist():
            for wave in (np.cos, np.sin):
                values = wave(2 * np.pi * (k + 1) * logs / (p - 1))
                if np.linalg.norm(values) > 1e-9:  # there is no sine at half the order
                    u = torch.from_numpy(values / np.linalg.norm(values))
                    part += torch.outer(u, u @ own)
        out[nonzero] = part + own.mean(dim=0)
        return out

    assert_scores(variant_loss(subject, "trig", modes).scores, subject, trig)

    def cubes(run: int) -> Tensor:
        logits, out = plain_logits(subject, run), torch.zeros(121, p, dtype=torch.float64)
        out[answers == 0] = logits[answers == 0].mean(dim=0)
        for k in modes[run].nonzero()[:, 0].tolist():
            cube = torch.zeros(121, p, dtype=torch.float64)
            for i, s in enumerate(answers.tolist()):
                for c in range(1, p):
                    if s:
                        cube[i, c] = np.cos(2 * np.pi * (k + 1) * (logarithm[s] - logarithm[c]) / (p - 1))
            out += (logits * cube).sum() / cube.square().sum() * cube
        return out

    assert_scores(variant_loss(subject, "cube_restricted", modes).scores, subject, cubes)


def test_sums_are_another_reading_of_multiplication() -> None:
    subject = trained("mult_mod11")
    modes = torch.tensor([[True, False, True, False, False]])
    a, b = subject.task.inputs.T

    def excluded(run: int) -> Tensor:
        logits = plain_logits(subject, run)
        return logits - sum(component(logits, waves(subject, k, a + b)) for k in (1, 3))

    assert_scores(variant_loss(subject, "excluded", modes, by="sum").scores, subject, excluded)


# Neurons.


def head_of(subject: RunStack, run: int, stream: Tensor) -> Tensor:
    module = module_of(subject, run)
    with torch.no_grad():
        return module.unembed(module.ln_final(stream))


def mlp_output(subject: RunStack, run: int, hidden: Tensor) -> Tensor:
    with torch.no_grad():
        return module_of(subject, run).blocks[-1].mlp.outer(hidden)


@pytest.mark.parametrize("name", list(SITES))
def test_losses_of_neurons_go_through_the_output_map_then_the_final_norm(name: str) -> None:
    subject = trained("add_mod11", architecture=ARCHITECTURES[name])
    modes, block = choice(subject), SITES[name]

    def parts(run: int) -> tuple[Tensor, Tensor]:
        hidden = seen(subject, run, f"{block}.mlp.hook_post")
        return hidden, key_part(subject, run, hidden, modes)

    def neuron_restricted(run: int) -> Tensor:
        hidden, part = parts(run)
        logits = head_of(subject, run, mlp_output(subject, run, part + hidden.mean(dim=0)))
        return logits + plain_logits(subject, run).mean(dim=0) - logits.mean(dim=0)

    def neuron_excluded(run: int) -> Tensor:
        hidden, part = parts(run)
        beside = seen(subject, run, f"{block}.hook_resid_mid")
        return head_of(subject, run, mlp_output(subject, run, hidden - part) + beside)

    def hidden_restricted(run: int) -> Tensor:
        return head_of(subject, run, mlp_output(subject, run, parts(run)[1]))

    def hidden_excluded(run: int) -> Tensor:
        hidden, part = parts(run)
        return head_of(subject, run, mlp_output(subject, run, hidden - part))

    by_hand = {
        "neuron_restricted": (neuron_restricted, "validation_loss"),
        "neuron_excluded": (neuron_excluded, "train_loss"),
        "hidden_restricted": (hidden_restricted, "loss"),
        "hidden_excluded": (hidden_excluded, "train_loss"),
    }
    for variant, (logits_of, measure) in by_hand.items():
        found = variant_loss(subject, variant, modes)
        assert_scores(found.scores, subject, logits_of)
        assert torch.equal(found.loss, getattr(found.scores, measure)), variant


def test_hidden_losses_of_a_group_project_on_the_entries_of_its_irreps() -> None:
    subject, (matrices, _) = trained("S3"), symmetric_three()
    labels = [mode.label for mode in subject.task.basis().modes.modes]
    modes = torch.tensor([[label == "(2,1)" for label in labels]])
    products = np.stack([(matrices[x] @ matrices[y]).ravel() for x in range(6) for y in range(6)])
    # The entries of permutation matrices, without constants, are those of the two-dimensional irrep.
    left, sizes, _ = np.linalg.svd(products - products.mean(axis=0), full_matrices=False)
    entries = torch.from_numpy(left[:, sizes > 1e-9])
    assert entries.shape == (36, 4)

    def hidden_excluded(run: int) -> Tensor:
        hidden = seen(subject, run, "blocks.1.mlp.hook_post")
        return head_of(subject, run, mlp_output(subject, run, hidden - entries @ (entries.T @ hidden)))

    assert_scores(variant_loss(subject, "hidden_excluded", modes).scores, subject, hidden_excluded)


def test_the_papers_loss_keeps_the_seven_modes_with_most_neurons() -> None:
    subject = trained("add_mod31", steps=10)
    found = variant_loss(subject)

    def restricted(run: int) -> Tensor:
        hidden = seen(subject, run, "blocks.1.mlp.hook_post").numpy()
        answers = subject.task.answers
        waves = np.fft.rfft(np.stack([hidden[answers == s].mean(axis=0) for s in range(31)]), axis=0)
        power = np.abs(waves[1:]) ** 2
        votes = Counter(power.argmax(axis=0).tolist())
        top = sorted(range(15), key=lambda f: (-votes[f], -power[f].sum()))[:7]
        assert found.modes[run].nonzero()[:, 0].tolist() == sorted(top)
        waves[[f for f in range(1, 16) if f - 1 not in top]] = 0
        kept = torch.from_numpy(np.fft.irfft(waves, n=31, axis=0)[answers])
        beside = seen(subject, run, "blocks.1.hook_resid_mid")
        return head_of(subject, run, mlp_output(subject, run, kept) + beside)

    assert_scores(found.scores, subject, restricted)
    assert torch.equal(found.loss, found.scores.loss)
    general = filtered_loss(subject, "blocks.1.mlp.hook_post")
    assert torch.allclose(general.loss, found.loss, atol=1e-12)


def test_a_dominant_mode_is_removed_from_any_site_in_one_call() -> None:
    subject = trained("add_mod11")
    site = "blocks.0.mlp.hook_post"
    found = filtered_loss(subject, site, 1, "remove")
    assert found.modes.sum(dim=1).tolist() == [1, 1]
    expected = []
    for run in range(2):
        module = module_of(subject, run)
        part = key_part(subject, run, seen(subject, run, site), found.modes)

        def removed(m, a, out: Tensor, part: Tensor = part) -> Tensor:
            return torch.cat([out[:, :-1], out[:, -1:] - part[:, None]], dim=1)

        module.get_submodule(site).register_forward_hook(removed)
        expected.append(module(torch.tensor(subject.task.tokens)).detach())
    assert_scores(found.scores, subject, expected.__getitem__)


def test_the_filter_over_pairs_is_the_named_alternative() -> None:
    subject = trained("add_mod11")
    site, modes = "blocks.1.mlp.hook_post", choice(subject)
    found = filtered_loss(subject, site, modes, kind="input_pairs")

    def restricted(run: int) -> Tensor:
        hidden = seen(subject, run, site).view(11, 11, -1)
        columns = [np.full(11, 11**-0.5)]
        for k in modes[run].nonzero()[:, 0].tolist():
            columns += [np.sqrt(2 / 11) * wave(2 * np.pi * (k + 1) * np.arange(11) / 11) for wave in (np.cos, np.sin)]
        projector = torch.from_numpy(np.stack(columns, axis=1) @ np.stack(columns))
        kept = torch.einsum("xa,yb,abj->xyj", projector, projector, hidden).flatten(0, 1)
        return head_of(subject, run, mlp_output(subject, run, kept) + seen(subject, run, "blocks.1.hook_resid_mid"))

    assert_scores(found.scores, subject, restricted)


# Key modes, runs and errors.


def test_keys_are_this_checkpoints_or_anothers() -> None:
    early, late = trained("add_mod11", steps=5), trained("add_mod11")
    assert torch.equal(variant_loss(early, "trig").modes, key_modes(early))
    assert torch.equal(variant_loss(early, "trig", key_modes(late)).modes, key_modes(late))
    assert torch.equal(variant_loss(early, "trig", 2).modes, top_modes(early, "blocks.1.mlp.hook_post", 2))
    one = key_modes(late.select([0]))
    assert torch.equal(variant_loss(early, "trig", one).modes, one.expand(2, -1))


@pytest.mark.parametrize("name", list(VARIANTS))
def test_a_stack_is_read_as_each_run_alone_and_nan_stays_alone(name: str) -> None:
    healthy = trained("add_mod11", 3)
    weights = {key: value.clone() for key, value in healthy.weights.items()}
    for value in weights.values():
        value[1] = torch.nan
    sick = replace(healthy, weights=weights)
    one, other = variant_loss(healthy, name), variant_loss(sick, name)
    for f in fields(Scores):
        before, after = getattr(one.scores, f.name), getattr(other.scores, f.name)
        assert torch.equal(before[[0, 2]], after[[0, 2]])
        assert after[1].isnan()
        for run in (0, 2):
            alone = getattr(variant_loss(sick.select([run]), name).scores, f.name)
            assert alone.item() == pytest.approx(after[run].item(), abs=1e-10)
    with pytest.raises(InputError, match="run 1 has activations"):
        variant_loss(sick.select([1]), name)


def test_models_without_mlps_have_no_path_beside_the_skip() -> None:
    subject = trained("add_mod11", architecture=ARCHITECTURES["attention_only"])
    assert variant_loss(subject, "paper_restricted").loss.isfinite().all()
    with pytest.raises(InputError, match="need a model with MLPs, got mlp = 'dropped'"):
        variant_loss(subject, "hidden_restricted")


def test_float32_runs_are_scored_in_float64() -> None:
    run = small_run("add_mod11", 0, TWO_LAYERS, precision="float32")
    state, cohort = fresh([run])
    advance(state, cohort, 30)
    subject = subject_of(cohort.specs, state.weights)
    assert subject.logits().dtype == torch.float32
    exact = subject_of(cohort.specs, state.weights.double())
    for name in VARIANTS:
        modes = torch.tensor([[True, False, True, False, False]])
        found = variant_loss(subject, name, modes).loss
        assert found.dtype == torch.float64
        assert found.item() == pytest.approx(variant_loss(exact, name, modes).loss.item(), rel=1e-4)


@pytest.mark.gpu
def test_a_gpu_scores_as_a_cpu() -> None:
    for task in ("add_mod11", "mult_mod11", "S3"):
        subject = trained(task)
        there = on_cuda(subject)
        for name in VARIANTS:
            found = variant_loss(there, name)
            assert torch.allclose(found.loss.cpu(), variant_loss(subject, name).loss, atol=1e-9)
        by_mode = excluded_loss_by_mode(there)
        assert torch.allclose(by_mode.loss.cpu(), excluded_loss_by_mode(subject).loss, atol=1e-9)
