import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from math import isnan
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from plain_runs import ARCHITECTURES, TWO_LAYERS
from torch.nn.functional import cross_entropy

from grokscope.activations import RunStack
from grokscope.errors import InputError
from grokscope.measures import fsd_null, patching
from grokscope.measures.ablation import ablation
from grokscope.measures.catalogue import MEASURES, measure, measure_named, select
from grokscope.measures.fourier_kan import fourier_kan, trained_fourier_kan
from grokscope.measures.logit_structure import logit_structure
from grokscope.measures.patching import drawn_pairs, head_patching, path_patching
from grokscope.measures.question import Question
from grokscope.measures.rank import fourier_rank
from grokscope.measures.restricted import filtered_loss, variant_loss
from grokscope.measures.synchronization import fsd, fsd_gen, fsd_top_k
from grokscope.measures.variants import VARIANTS
from grokscope.measures.weight_spectra import neuron_logit_spectrum
from grokscope.model import Head, Receiver, components_of
from grokscope.specs import Architecture
from grokscope.tasks import split
from measured_stacks import (
    DRAWS,
    PAIRS,
    RUNS,
    SITE,
    STACKED,
    TASKS,
    asked,
    by_answer,
    columns_of,
    hidden,
    known,
    measurable,
    module_of,
    question_of,
    rows_of,
    spec_of,
    trained,
    with_nan,
)
from scripts import DOCS, module_at

OF_NULLS = {"gaussian_95", "untrained_95"}  # known without the run


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsd_null, "NULL_DRAWS", DRAWS)
    monkeypatch.setattr(patching, "PATCHED_PAIRS", PAIRS)


def numbers(row: dict[str, float | str]) -> dict[str, float]:
    return {column: value for column, value in row.items() if not isinstance(value, str)}


def near(row: dict[str, float | str]) -> object:
    return pytest.approx(numbers(row), rel=1e-9, abs=1e-12)


def changed(subject: RunStack, **weights: torch.Tensor) -> RunStack:
    """Some parameters replaced; dots are written as two underscores."""
    return replace(subject, weights=subject.weights | {name.replace("__", "."): w for name, w in weights.items()})


# What the catalogue has.


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_says_what_it_is(name: str) -> None:
    one = MEASURES[name]
    assert name.isidentifier()
    assert name == name.lower()
    for word in ("title", "formula", "source", "cost", "null", "undefined"):
        text = getattr(one, word)
        assert len(text) > 3, word
        assert text == text.strip(), word
        assert "\n" not in text, word
    assert one.columns
    for column, meaning in one.columns.items():
        assert column.strip()
        assert len(meaning) > 5
        assert "|" not in column + meaning, "a cell of a table"


def test_an_unknown_measure_is_rejected_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"there is no measure 'fds'; did you mean 'fsd'\?"):
        measure_named("fds")
    with pytest.raises(InputError, match=r"there is no measure 'Rank'; did you mean 'rank'\?"):
        measure(Question(trained("S3")), ["fsd", "Rank"])
    with pytest.raises(InputError, match="no measure was asked for; `grokscope measure` lists them"):
        measure(Question(trained("S3")), [])


def test_a_measure_asked_for_twice_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(select(["rank", "fsd", "rank"])) == ["rank", "fsd"]
    calls, before = [], MEASURES["rank"].compute
    counted = replace(MEASURES["rank"], compute=lambda question: calls.append(1) or before(question))
    monkeypatch.setitem(MEASURES, "rank", counted)
    measure(Question(trained("S3")), ["rank", "rank"])
    assert calls == [1]


# Columns: `{a,b}` stands for several, `…` for all there are in the model.


def literal(pattern: str) -> set[str]:
    """The columns that a pattern names itself, those that `…` stands for left out."""
    parts = [
        [choice for choice in part[1:-1].split(",") if choice != "…"] if part.startswith("{") else [part]
        for part in re.split(r"(\{[^}]*\})", pattern)
    ]
    return set() if "…" in (pattern[0], pattern[-1]) else {"".join(choice) for choice in itertools.product(*parts)}


def expression(pattern: str) -> re.Pattern[str]:
    """All columns that a pattern may stand for."""
    found = ""
    for part in re.split(r"(\{[^}]*\}|…)", pattern):
        if part == "…":
            found += ".+"
        elif part.endswith("…}"):  # others like the first
            found += re.sub(r"[a-z]+", "[a-z]+", re.sub(r"[0-9]", "#", re.escape(part[1:].split(",")[0])))
        else:
            found += f"(?:{part[1:-1].replace(',', '|')})" if part.startswith("{") else re.escape(part)
    return re.compile(found.replace("#", "[0-9]+"))


def absent(task: str) -> set[str]:
    """What the meaning of a column leaves out: K = 2 and 3 where the basis has no more modes than that."""
    modes = len(trained(task).task.basis().modes)
    return {f"{word}_{k}" for word in ("fsd", "fsd_gen") for k in (2, 3) if k >= modes}


def test_patterns_are_read_as_they_are_meant() -> None:
    assert literal("drop_{attn0,mlp0,…}_{zero,mean}") == {
        f"drop_{a}0_{b}" for a in ("attn", "mlp") for b in ("zero", "mean")
    }
    assert literal("norm_…") == set()
    assert expression("drop_{attn0,mlp0,…}_{zero,mean}").fullmatch("drop_mlp12_mean")
    assert not expression("drop_{attn0,mlp0,…}_{zero,mean}").fullmatch("drop_head0.1_mean")
    assert expression("head{0.0,…}_to_logits").fullmatch("head1.13_to_logits")
    assert absent("S3") == {"fsd_2", "fsd_3", "fsd_gen_2", "fsd_gen_3"}
    assert absent("mult_mod7") == {"fsd_3", "fsd_gen_3"}
    assert not absent("add_mod11")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", STACKED)
def test_a_measure_gives_the_columns_it_promises_and_no_others(name: str, task: str) -> None:
    if name not in measurable(task):
        with pytest.raises(InputError, match="fits cosines and sines, and the modes of this isotypic basis on 6 elem"):
            measure(Question(trained(task)), [name])
        return
    # A pattern that begins with … is for what the task names, such as its groups of rows that are held out.
    found, promised = columns_of(task, name), [one for one in MEASURES[name].columns if one[0] != "…"]
    assert set().union(*map(literal, promised)) - absent(task) <= set(found)
    for column in found:
        assert sum(bool(expression(pattern).fullmatch(column)) for pattern in promised) == 1, column
    assert not absent(task) & set(found)


def test_components_heads_and_blocks_are_those_of_the_model() -> None:
    of = {name: set(columns_of("add_mod11", name)) for name in ("ablation", "patching", "norms")}
    branches = [f"{kind}{block}" for kind in ("attn", "mlp") for block in (0, 1)]
    heads = [f"head{block}.{head}" for block in (0, 1) for head in (0, 1)]
    dropped = [f"{branch}_{method}" for branch in branches for method in ("zero", "mean", "resample")]
    dropped += [f"{head}_zero" for head in heads]
    assert of["ablation"] == {f"{word}drop_{name}" for word in ("", "validation_") for name in dropped}
    assert of["patching"] == {f"{head}{path}" for head in heads for path in ("", "_to_logits")}
    blocks = ("embed", "pos_embed", "blocks.0", "blocks.1", "norms", "unembed")
    assert of["norms"] == {"norm", *(f"norm_{block}" for block in blocks)}


@pytest.mark.parametrize("task", TASKS)
def test_no_two_measures_share_a_column(task: str) -> None:
    every = [column for name in measurable(task) for column in columns_of(task, name)]
    assert len(every) == len(set(every))
    assert not {"run", "step", "undefined"} & set(every)


@pytest.mark.parametrize("task", TASKS)
def test_each_run_has_one_number_in_every_column(task: str) -> None:
    rows = rows_of(task)
    assert len(rows) == RUNS
    for row in rows:
        assert row["undefined"] == ""
        for column, value in numbers(row).items():
            assert type(value) is float, column
            assert np.isfinite(value), column
    own = [column for column in rows[0] if ".rank_" not in column]  # there are few ranks, and many columns of them
    varied = [column for column in own if len({row[column] for row in rows}) > 1]
    assert len(varied) > 0.7 * len(own), "three runs are three"


# Numbers, from the definitions: the plain module, loops and numpy.


def powers(subject: RunStack, functions: np.ndarray) -> np.ndarray:
    """‖P_m A_j‖² of functions [answers, columns], by projectors."""
    basis = subject.task.basis()
    over = functions[basis.answers]
    return np.array([((basis.modes.projector(m) @ over) ** 2).sum(axis=0) for m in range(len(basis.modes))])


def median_of(values: np.ndarray) -> float:
    return float(np.median(values))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("run", range(RUNS))
def test_what_is_read_of_neurons_is_what_the_definitions_give(task: str, run: int) -> None:
    subject = trained(task)
    values = hidden(subject, run)
    means = by_answer(subject, values)
    power = powers(subject, means)
    modes, neurons = power.shape
    dimensions = subject.task.basis().modes.dimensions
    strongest = (power / dimensions[:, None]).argmax(axis=0)
    votes = np.bincount(strongest, minlength=modes)
    shares = power / power.sum(axis=0)
    ordered = np.sort(shares, axis=0)
    needed = 1 + (np.cumsum(ordered[::-1], axis=0) < 0.9 - 1e-12).sum(axis=0)
    expected = {
        "fsd": (votes.max() / neurons - 1 / modes) / (1 - 1 / modes),
        "constant_share": 0.0,
        "answer_share": means[subject.task.answers].var(axis=0).sum() / values.var(axis=0).sum(),
        "rank": median_of(needed),
        "rank_one_share": (needed == 1).mean(),
        "r2_rank_1": shares.max(axis=0).mean(),
        "ipr": median_of((shares**2).sum(axis=0)),
        "gini": median_of(np.abs(shares[:, None] - shares).sum(axis=(0, 1)) / (2 * modes)),
        "entropy": median_of(-(shares * np.log(shares)).sum(axis=0) / np.log(modes)),
    }
    row = rows_of(task)[run]
    for column, value in expected.items():
        assert row[column] == pytest.approx(value, rel=1e-6, abs=1e-9), column
    assert votes[int(row["fsd_mode"]) - 1] == votes.max()
    assert row["fsd_gen_1"] == row["fsd"]
    assert row["fsd_gen_mode"] == row["fsd_mode"]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("run", range(RUNS))
def test_what_is_read_of_weights_and_logits_is_what_the_plain_module_gives(task: str, run: int) -> None:
    subject = trained(task)
    module, row, own = module_of(subject, run), rows_of(task)[run], subject.task
    share = powers(subject, subject.weights["embed.W_E"][run, : own.symbols].numpy()).sum(axis=1)
    share /= share.sum()
    assert row["embedding_peak_share"] == pytest.approx(share.max())
    assert row["embedding_mode"] == 1 + share.argmax()
    assert row["embedding_rank"] == 1 + (np.cumsum(np.sort(share)[::-1]) < 0.9).sum()
    assert row["embedding_ipr"] == pytest.approx((share**2).sum())
    assert row["embedding_entropy"] == pytest.approx(-(share * np.log(share)).sum() / np.log(len(share)))
    squares = sum(float(parameter.detach().double().square().sum()) for parameter in module.parameters())
    assert row["norm"] == pytest.approx(squares**0.5, rel=1e-9)
    logits, answers = module(torch.tensor(own.tokens)).detach().double(), torch.tensor(own.answers)
    pairs = split(own, 0.5, run)
    accuracy = {}
    for part in ("train", "validation"):
        rows = torch.tensor(getattr(pairs, part))
        accuracy[part] = (logits[rows].argmax(dim=1) == answers[rows]).double().mean().item()
        assert row[f"{part}_accuracy"] == pytest.approx(accuracy[part])
        assert row[f"{part}_loss"] == pytest.approx(cross_entropy(logits[rows], answers[rows]).item())
    assert row["gap"] == pytest.approx(accuracy["train"] - accuracy["validation"])


def direct_logit_map(question: Question) -> dict[str, torch.Tensor]:
    waves = neuron_logit_spectrum(question.subject)
    found = fsd(waves.density)
    rank = fourier_rank(waves.power).median
    return {"logit_map_fsd": found.fsd, "logit_map_mode": 1 + found.mode, "logit_map_rank": rank}


def direct_logits(question: Question) -> dict[str, torch.Tensor]:
    found = logit_structure(question.subject)
    best = found.explained.max(dim=-1)
    return {"logit_share": found.total, "logit_peak_share": best.values, "logit_mode": 1 + best.indices}


def direct_removal(question: Question) -> dict[str, torch.Tensor]:
    """The mode that FSD names is taken out of block 0."""
    subject = question.subject
    mode = fsd(question.spectrum().density).mode
    modes = torch.nn.functional.one_hot(mode, len(subject.task.basis().modes)).bool()
    found = filtered_loss(subject, SITE, modes, "remove").scores
    words = ("accuracy", "train_accuracy", "validation_accuracy", "loss")
    return {f"without_mode_{word}": getattr(found, word) for word in words}


def direct_fourier_kan(question: Question) -> dict[str, torch.Tensor]:
    means, basis = question.means().means, question.subject.task.basis()
    exact, by_descent = fourier_kan(means, basis), trained_fourier_kan(means, basis, seed=0)
    return {
        "kan_r2": exact.r_squared.mean(dim=-1),
        "kan_trained_r2": by_descent.r_squared.mean(dim=-1),
        "kan_kept": exact.kept.double().quantile(0.5, dim=-1),
        "kan_agreement": by_descent.agreement,
    }


def direct_ablation(question: Question) -> dict[str, torch.Tensor]:
    names = {"attn_out": "attn", "mlp_out": "mlp"}
    found = {}
    for method in ("zero", "mean", "resample"):
        for row in ablation(question.subject, components_of(TWO_LAYERS), method):
            block, end = row.component.site.split(".")[1], row.component.site.rpartition("hook_")[2]
            head = row.component.head
            name = f"{names[end]}{block}" if head is None else f"head{block}.{head}"
            if head is None or method == "zero":
                found[f"drop_{name}_{method}"] = row.accuracy_drop
                found[f"validation_drop_{name}_{method}"] = row.validation_accuracy_drop
    return found


def direct_patching(question: Question) -> dict[str, torch.Tensor]:
    pairs, found = drawn_pairs(question.subject.task, PAIRS, 0), {}
    for block, index in itertools.product((0, 1), (0, 1)):
        sender = Head(block, index)
        found[f"head{block}.{index}"] = head_patching(question.subject, *pairs, sender).share
        direct = path_patching(question.subject, *pairs, sender, Receiver("logits"))
        found[f"head{block}.{index}_to_logits"] = direct.share
    return found


def direct_loss(name: str) -> Callable[[Question], dict[str, torch.Tensor]]:
    def compute(question: Question) -> dict[str, torch.Tensor]:
        found = variant_loss(question.subject, name)
        scores = {
            "all": found.scores.loss,
            "train": found.scores.train_loss,
            "validation": found.scores.validation_loss,
        }
        return {name: found.loss, f"{name}_modes": found.modes.sum(dim=-1)} | {
            f"{name}_{pairs}": loss for pairs, loss in scores.items()
        }

    return compute


DIRECT: dict[str, Callable[[Question], dict[str, torch.Tensor]]] = {
    "fsd_k": lambda question: {f"fsd_{k}": fsd_top_k(question.spectrum().density, k).fsd for k in (2, 3)},
    "fsd_gen": lambda question: {f"fsd_gen_{k}": fsd_gen(question.spectrum().density, k).fsd for k in (1, 2, 3)},
    "logit_map": direct_logit_map,
    "logits": direct_logits,
    "removal": direct_removal,
    "fourier_kan": direct_fourier_kan,
    "ablation": direct_ablation,
    "patching": direct_patching,
    **{name: direct_loss(name) for name in VARIANTS},
}


@pytest.mark.parametrize("name", DIRECT)
def test_numbers_are_those_of_the_functions_behind_them(name: str) -> None:
    task = "add_mod11"
    expected = DIRECT[name](question_of(task))
    rows = asked(task, name)
    assert set(columns_of(task, name)) - {"fsd_gen_mode"} == set(expected)
    for run, row in enumerate(rows):
        for column, value in known(trained(task), run, **expected).items():
            assert row[column] == pytest.approx(value, rel=1e-6, abs=1e-9), column


def test_every_measure_is_compared_with_something() -> None:
    plain = {"fsd", "rank", "concentration", "embedding", "memorization", "norms", "control", "fsd_null"}
    # Whose own files have a loop or a plain module for every column.
    apart = {"singular_values", "output_entropy", "representation", "updates", "update_spectrum", "commutator"}
    apart |= {"last_block", "readings", "logit_scale", "residual", "attention_updates"}
    assert set(MEASURES) - set(DIRECT) == plain | apart


# Stacks.


@pytest.mark.parametrize("task", ["add_mod11", "S3"])
def test_a_run_in_a_stack_is_measured_as_it_is_alone(task: str) -> None:
    for run in (0, 2):
        (alone,) = measure(Question(trained(task).select([run]), spec=spec_of(task)), measurable(task))
        assert numbers(alone) == near(rows_of(task)[run])


@pytest.mark.parametrize(("task", "value"), [("add_mod11", float("nan")), ("S3", float("nan")), ("S3", float("inf"))])
def test_a_run_that_is_not_a_number_spoils_no_other(task: str, value: float) -> None:
    rows = measure(Question(with_nan(trained(task), 1, value), spec=spec_of(task)), measurable(task))
    without = measure(Question(trained(task).select([0, 2]), spec=spec_of(task)), measurable(task))
    for row, same in zip((rows[0], rows[2]), without, strict=True):
        assert numbers(row) == near(same)
        assert row["undefined"] == ""
    assert rows[1]["undefined"] == "weights in embed.W_E are not numbers"
    defined = {column for column, number in numbers(rows[1]).items() if not isnan(number)}
    assert defined == OF_NULLS | {f"{name}_modes" for name in VARIANTS}
    assert all(rows[1][f"{name}_modes"] == 0 for name in VARIANTS)


def test_finite_weights_with_activations_that_are_not_name_the_site() -> None:
    subject = trained("add_mod11", ARCHITECTURES["nanda"])
    huge = subject.weights["blocks.0.mlp.W_in"].clone()
    huge[1] = 1e308
    first, broken, last = measure(Question(changed(subject, blocks__0__mlp__W_in=huge)), ["fsd", "rank"])
    assert broken["undefined"] == f"activations at {SITE} are not numbers"
    assert all(isnan(value) for value in numbers(broken).values())
    assert [first, last] == [measure(Question(subject), ["fsd", "rank"])[run] for run in (0, 2)]


@pytest.mark.parametrize("name", STACKED)
def test_a_single_run_that_is_not_a_number_is_rejected(name: str) -> None:
    alone = with_nan(trained("add_mod11").select([2]), 0)
    with pytest.raises(InputError, match=r"run 2 has (activations at \S+|logits) that are not numbers"):
        measure(Question(alone, spec=spec_of("add_mod11")), [name])


# Constant neurons.


def with_constant(task: str, neurons: int, architecture: Architecture = TWO_LAYERS) -> RunStack:
    """Block 0's first neurons have no input: they are gelu(bias), whatever the pair."""
    subject = trained(task, architecture)
    inward = subject.weights["blocks.0.mlp.W_in"].clone()
    inward[..., :neurons] = 0
    return changed(subject, blocks__0__mlp__W_in=inward)


READ_OF_NEURONS = ("fsd", "fsd_null", "fsd_k", "fsd_gen", "control", "rank", "concentration", "removal", "fourier_kan")


@pytest.mark.parametrize(("neurons", "share"), [(32, "100%"), (16, "50%"), (24, "75%")])
def test_where_most_neurons_are_constant_nothing_is_said_of_their_modes(neurons: int, share: str) -> None:
    question = Question(with_constant("add_mod11", neurons), spec=spec_of("add_mod11"))
    for row in measure(question, READ_OF_NEURONS):
        assert row.pop("undefined") == f"{share} of the neurons at {SITE} are constant over the answers"
        assert row.pop("constant_share") == neurons / 32
        assert isnan(row.pop("answer_share")) == (neurons == 32)
        defined = {column for column, value in row.items() if not isnan(value)}
        assert defined <= OF_NULLS | {"renamed_95"} | {f"embedding_{name}" for name in ("ipr", "gini", "entropy")}


def test_a_few_constant_neurons_are_counted_and_left_out() -> None:
    subject = with_constant("add_mod11", 12)
    for run, row in enumerate(measure(Question(subject), ["fsd", "rank"])):
        assert row["undefined"] == ""
        assert row["constant_share"] == 12 / 32
        power = powers(subject, by_answer(subject, hidden(subject, run)))[:, 12:]
        peak = np.bincount(power.argmax(axis=0), minlength=5).max() / 20
        assert row["fsd"] == pytest.approx((peak - 0.2) / 0.8)


def test_a_model_of_zeros_is_undefined_and_its_accuracy_is_not() -> None:
    subject = with_nan(trained("add_mod11"), 0, 0.0)
    row = measure(Question(subject), [*READ_OF_NEURONS, "memorization", "logits", "embedding", "logit_map", "norms"])[0]
    assert row["undefined"].startswith("100% of the neurons")
    for column in ("fsd", "fsd_mode", "rank", "logit_share", "logit_mode", "embedding_rank", "embedding_mode"):
        assert isnan(row[column]), column
    assert isnan(row["logit_map_fsd"])
    assert row["norm"] == 0
    assert row["train_loss"] == pytest.approx(np.log(11))


def test_what_is_undefined_for_another_reason_is_named() -> None:
    subject = trained("add_mod11")
    silent = {f"unembed__{name}": torch.zeros_like(subject.weights[f"unembed.{name}"]) for name in ("W_U", "b_U")}
    for row in measure(Question(changed(subject, **silent)), ["fsd", "logits", "patching"]):
        assert row["undefined"] == "logit_share and 10 more columns: not defined for this model or checkpoint"
        assert not isnan(row["fsd"])


def test_one_mode_is_nothing_to_agree_on() -> None:
    for row in measure(Question(trained("Z3")), ["fsd", "fsd_gen", "fsd_k", "fsd_null", "rank"]):
        assert row["undefined"] == "the basis has a single mode: there is nothing to agree on"
        assert isnan(row["fsd"])
        assert isnan(row["fsd_mode"])
        assert row["rank"] == 1
        assert "fsd_2" not in row


# What cannot be measured is rejected in a sentence.


@pytest.mark.parametrize(
    ("name", "architecture", "sentence"),
    [
        ("logit_map", "attention_only", "this model has no MLP, and so no map from neurons to logits"),
        ("logit_map", "norm_for_mlp", "this model has no MLP"),
        (
            "hidden_restricted",
            "attention_only",
            "losses without the skip path need a model with MLPs, got mlp = 'dropp",
        ),
        ("patching", "mlp_only_pooled", "only a model with attention has heads to patch, got attention = 'dropped'"),
        ("patching", "norm_for_attention", "only a model with attention has heads to patch, got attention = 'norm'"),
    ],
)
def test_a_model_without_the_part_is_rejected(name: str, architecture: str, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        measure(Question(trained("add_mod7", ARCHITECTURES[architecture], 2)), [name])


@pytest.mark.parametrize("architecture", ["attention_only", "mlp_only_pooled", "norm_for_mlp", "one_layer"])
def test_everything_else_is_measured_on_every_architecture(architecture: str) -> None:
    model = ARCHITECTURES[architecture]
    without_mlp = {"logit_map", "neuron_restricted", "hidden_restricted", "hidden_excluded"}
    names = set(STACKED) - (without_mlp if model.mlp != "on" else set())
    names -= {"patching", "readings"} if model.attention != "on" else set()  # some places see nothing there
    spec = spec_of("add_mod7", model)
    for row in measure(Question(trained("add_mod7", model, 2), spec=spec), sorted(names)):
        assert row["undefined"] == ""


def test_measuring_changes_no_weight() -> None:
    subject = trained("S3")
    before = {name: weight.clone() for name, weight in subject.weights.items()}
    tables = [table.clone() for table in (subject.is_train, subject.labels)]
    measure(Question(subject, reference=subject.select([2]), spec=spec_of("S3")), measurable("S3"))
    assert all(before[name].equal(weight) for name, weight in subject.weights.items())
    assert all(one.equal(other) for one, other in zip(tables, (subject.is_train, subject.labels), strict=True))


# The page that is written from the catalogue.


@pytest.fixture
def script() -> ModuleType:
    return module_at(DOCS / "make_measures.py")


ABOUT = {
    "run": "add_mod97_s0-0123456789abcdef",
    "outcome": {"outcome": "grokked", "memorized": 300, "grokked": 3300},
    "provenance": {"commit": "abcdef012345", "torch": "2.11.0", "device": "a processor"},
}


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        (ABOUT["outcome"], "memorised at step 300 and grokked at step 3,300, measured"),
        (
            {"outcome": "never", "memorized": 300, "grokked": None},
            "memorised at step 300 and has not grokked, measured",
        ),
        (None, "has not memorised and has not grokked, measured"),
    ],
)
def test_the_page_tells_every_measure(
    outcome: dict[str, object] | None,
    sentence: str,
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(script, "DOCS", tmp_path)
    (tmp_path / "measures.json").write_text(json.dumps({**ABOUT, "outcome": outcome}))
    page = script.page()
    assert sentence in " ".join(page.split())
    headings = re.findall(r"^## `(\w+)`$", page, re.MULTILINE)
    assert headings == list(MEASURES)
    for name, one in MEASURES.items():
        section = page.partition(f"## `{name}`\n")[2].partition("\n## ")[0]
        assert (f"images/measures/{name}.svg" in section) == (name in script.pictured())
        for text in (one.title, one.formula, one.source, one.cost, one.null, one.undefined):
            assert text in section
        for column, meaning in one.columns.items():
            assert f"| `{column}` | {meaning} |" in section


def test_the_pictures_show_columns_that_are_promised(script: ModuleType) -> None:
    assert set(script.SHOWN) <= set(MEASURES)
    assert {"fsd", "ablation", "trig"} <= set(script.pictured())
    for name, one in MEASURES.items():
        shown = script.SHOWN.get(name, [name])
        assert shown
        for column in shown:
            assert any(expression(pattern).fullmatch(column) for pattern in one.columns), column


@pytest.mark.skipif(not (DOCS / "measures.md").exists(), reason="the page has not been written yet")
def test_the_page_is_what_the_catalogue_has(script: ModuleType) -> None:
    assert (DOCS / "measures.md").read_text(encoding="utf-8") == script.page()


def test_the_null_of_fsd_is_no_number_of_another_network() -> None:
    assert not re.search(r"\d\.\d", MEASURES["fsd"].null)  # it depends on the modes and neurons; see docs/concepts.md
