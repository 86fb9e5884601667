from collections import Counter
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import torch
from plain_runs import ARCHITECTURES, SMALL, TWO_LAYERS, small_run

from grokscope.activations import RunStack
from grokscope.errors import InputError
from grokscope.measures import fsd_null, patching
from grokscope.measures.catalogue import measure
from grokscope.measures.fourier_kan import fourier_kan
from grokscope.measures.mode_choice import key_modes, top_modes
from grokscope.measures.question import Question
from grokscope.measures.restricted import filtered_loss, variant_loss
from grokscope.measures.variants import VARIANTS
from grokscope.measures.weight_spectra import embedding_spectrum
from grokscope.specs import Architecture, ReadingSpec
from measured_stacks import stack_of


@lru_cache
def trained(task: str = "add_mod11", architecture: Architecture = SMALL, steps: int = 30) -> RunStack:
    return stack_of([small_run(task, seed, architecture, learning_rate=0.003) for seed in range(3)], steps)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often means were taken at each site, and how often the inputs were gone through."""
    counts: Counter[str] = Counter()
    through, means = RunStack.parts, RunStack.means

    def counted_means(self: RunStack, site: str, *arguments: object, **options: object):
        counts[site] += 1
        return means(self, site, *arguments, **options)

    def counted_parts(self: RunStack, *arguments: object, **options: object):
        counts["passes"] += 1
        return through(self, *arguments, **options)

    monkeypatch.setattr(RunStack, "means", counted_means)
    monkeypatch.setattr(RunStack, "parts", counted_parts)
    return counts


def test_measures_of_the_same_neurons_share_one_pass(passes: Counter[str]) -> None:
    question = Question(trained())
    rows = measure(question, ["fsd", "rank", "concentration", "fsd_k", "fsd_gen", "fourier_kan"])
    assert passes == {"blocks.0.mlp.hook_post": 1, "passes": 1}
    assert measure(question, ["fsd"])[0].items() <= rows[0].items()
    assert passes["passes"] == 1, "it is still known"
    measure(Question(trained()), ["fsd"])
    assert passes["passes"] == 2, "another question has not read anything"


def test_what_needs_the_weights_alone_reads_no_input(passes: Counter[str]) -> None:
    measure(Question(trained()), ["norms", "embedding", "logit_map"])
    assert not passes


def test_means_of_another_site_are_kept_apart(passes: Counter[str]) -> None:
    question = Question(trained(architecture=TWO_LAYERS))
    for site in ("blocks.0.mlp.hook_post", "blocks.1.mlp.hook_post"):
        first = question.means(site)
        assert question.means(site) is first
    assert question.means() is question.means("blocks.0.mlp.hook_post")
    assert passes["blocks.0.mlp.hook_post"] == passes["blocks.1.mlp.hook_post"] == 1
    assert question.spectrum("blocks.1.mlp.hook_post").power.shape == (3, 5, 32)


# Where.


@pytest.mark.parametrize(
    ("architecture", "chosen", "site", "last"),
    [
        ("two_layers", "auto", "blocks.0.mlp.hook_post", "blocks.1.mlp.hook_post"),
        ("two_layers", "mlp", "blocks.0.mlp.hook_post", "blocks.1.mlp.hook_post"),
        ("two_layers", "attention", "blocks.0.hook_attn_out", "blocks.1.mlp.hook_post"),
        ("attention_only", "auto", "blocks.0.hook_attn_out", "blocks.1.hook_attn_out"),
        ("attention_only", "attention", "blocks.0.hook_attn_out", "blocks.1.hook_attn_out"),
        ("one_layer", "auto", "blocks.0.mlp.hook_post", "blocks.0.mlp.hook_post"),
    ],
)
def test_the_site_is_the_readings_choice(architecture: str, chosen: str, site: str, last: str) -> None:
    subject = trained("add_mod7", ARCHITECTURES[architecture], 2)
    question = Question(subject, ReadingSpec(fsd_site=chosen))
    assert (question.site, subject.hidden_sites[1]) == (site, last)
    width = 32 if site.endswith("post") else 16
    assert question.means().means.shape == (3, 7, width)
    assert question.means().means.equal(subject.means(site).means)


@pytest.mark.parametrize("architecture", ["attention_only", "norm_for_mlp"])
def test_neurons_of_a_model_without_any_are_rejected(architecture: str) -> None:
    question = Question(trained("add_mod7", ARCHITECTURES[architecture], 2), ReadingSpec(fsd_site="mlp"))
    with pytest.raises(InputError, match="fsd_site 'mlp' needs a model with MLPs; this one has none"):
        measure(question, ["fsd"])


# By what, and in which basis.


def test_multiplication_is_read_by_answer_in_two_bases_and_by_sum() -> None:
    subject = trained("mult_mod7")
    hidden = subject.read("blocks.0.mlp.hook_post").numpy()
    a, b = subject.task.inputs.T
    logarithm = {int(pow(3, k, 7)): k for k in range(6)}  # 3 generates the units of Z_7
    readings = {
        ("answer", ""): ([logarithm.get(int(x * y % 7), -1) for x, y in zip(a, b, strict=True)], 6),
        ("answer", "multiplicative"): ([logarithm.get(int(x * y % 7), -1) for x, y in zip(a, b, strict=True)], 6),
        ("answer", "additive"): (a * b % 7, 7),
        ("sum", ""): ((a + b) % 7, 7),
        ("sum", "additive"): ((a + b) % 7, 7),
    }
    for (by, basis), (place, size) in readings.items():
        rows = measure(Question(subject, by=by, basis_name=basis), ["fsd"])
        for run, row in enumerate(rows):
            means = np.array([hidden[run][np.array(place) == s].mean(axis=0) for s in range(size)])
            power = np.abs(np.fft.rfft(means, axis=0)[1:]) ** 2
            modes = power.shape[0]
            peak = np.bincount(power.argmax(axis=0), minlength=modes).max() / power.shape[1]
            assert row["fsd"] == pytest.approx((peak - 1 / modes) / (1 - 1 / modes)), (by, basis)


def test_the_embedding_is_read_in_the_basis_that_is_asked_for() -> None:
    subject = trained("mult_mod7")
    found = {
        name: measure(Question(subject, basis_name=name), ["embedding"]) for name in ("multiplicative", "additive")
    }
    for name, rows in found.items():
        share = embedding_spectrum(subject, subject.task.basis(name)).share
        assert [row["embedding_peak_share"] for row in rows] == share.max(dim=-1).values.tolist()
    assert found["multiplicative"] != found["additive"]


@pytest.mark.parametrize(
    ("task", "by", "basis", "sentence"),
    [
        ("S3", "sum", "", "S3 has no sums a \\+ b to condition on: its symbols are not numbers"),
        ("mult_mod7", "sum", "multiplicative", "sums are read in the additive basis only, got 'multiplicative'"),
        ("mult_mod7", "answer", "aditive", "mult_mod7 has no basis 'aditive'; did you mean 'additive'?"),
        ("add_mod11", "answer", "isotypic", "add_mod11 has no basis 'isotypic'"),
    ],
)
def test_a_reading_that_the_task_does_not_have_is_rejected(task: str, by, basis: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        measure(Question(trained(task), by=by, basis_name=basis), ["fsd"])


# Whose key modes.


def test_given_keys_are_taken_whatever_the_runs_own_are() -> None:
    subject = trained("add_mod17")
    keys = torch.zeros(1, 8, dtype=torch.bool)
    keys[0, :3] = True
    for name in ("trig", "excluded", "paper_restricted"):
        rows = measure(Question(subject, keys=keys), [name])
        assert [row[name] for row in rows] == pytest.approx(variant_loss(subject, name, keys).loss.tolist(), rel=1e-12)
        assert [row[f"{name}_modes"] for row in rows] == [3] * 3


@pytest.mark.parametrize("name", VARIANTS)
def test_losses_with_a_reference_are_retrospective(name: str) -> None:
    early, late = trained("add_mod17", steps=4), trained("add_mod17", steps=60)
    reference = late.select([1])
    count = VARIANTS[name].count
    keys = key_modes(reference) if count is None else top_modes(reference, "blocks.0.mlp.hook_post", count)
    expected = variant_loss(early, name, keys)
    rows = measure(Question(early, reference=reference), [name])
    assert [row[name] for row in rows] == pytest.approx(expected.loss.tolist(), rel=1e-12)
    assert [row[f"{name}_modes"] for row in rows] == [int(keys.sum())] * 3
    (itself,) = measure(Question(reference, reference=reference), [name])
    (causal,) = measure(Question(reference), [name])
    assert itself == causal


def test_a_reference_is_one_checkpoint_of_the_same_task() -> None:
    with pytest.raises(InputError, match="a reference is one checkpoint, got 3"):
        Question(trained(), reference=trained())
    with pytest.raises(InputError, match="a reference must have learnt add_mod11, got S3"):
        Question(trained(), reference=trained("S3").select([0]))


def test_a_reference_that_is_not_a_number_is_named() -> None:
    reference = trained().select([2])
    broken = replace(reference, weights={k: torch.full_like(w, torch.nan) for k, w in reference.weights.items()})
    with pytest.raises(InputError, match=r"run 2 has activations at blocks.0.mlp.hook_post that are not numbers"):
        measure(Question(trained(), reference=broken), ["trig"])


# What a reading and a seed change.


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"restricted_modes": 1},
        {"restricted_modes": 100},
        {"restricted_scored_on": "validation"},
        {"restricted_scored_on": "train"},
        {"restricted_filter": "input_pairs", "restricted_modes": 2},
    ],
)
def test_the_papers_loss_is_read_as_the_reading_says(options: dict[str, object]) -> None:
    subject, reading = trained("add_mod17"), ReadingSpec(**options)
    site = "blocks.0.mlp.hook_post"
    found = filtered_loss(subject, site, reading.restricted_modes, kind=reading.restricted_filter)
    part = {"all": "loss", "train": "train_loss", "validation": "validation_loss"}[reading.restricted_scored_on]
    rows = measure(Question(subject, reading), ["paper_restricted"])
    assert [row["paper_restricted"] for row in rows] == getattr(found.scores, part).tolist()
    assert [row["paper_restricted_all"] for row in rows] == found.scores.loss.tolist()
    assert {row["paper_restricted_modes"] for row in rows} == {min(reading.restricted_modes, 8)}
    if options:
        assert rows != measure(Question(subject), ["paper_restricted"])


def test_fourier_kan_is_fitted_as_the_reading_says() -> None:
    subject = trained()
    for penalty, frequencies in ((0.1, None), (0.6, None), (0.1, 2)):
        reading = ReadingSpec(fourier_kan_penalty=penalty, fourier_kan_frequencies=frequencies)
        question = Question(subject, reading)
        fit = fourier_kan(question.means().means, subject.task.basis(), penalty, frequencies)
        rows = measure(question, ["fourier_kan"])
        assert [row["kan_r2"] for row in rows] == pytest.approx(fit.r_squared.mean(dim=-1).tolist())


def test_what_is_drawn_is_drawn_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsd_null, "NULL_DRAWS", 4)
    monkeypatch.setattr(patching, "PATCHED_PAIRS", 20)
    spec = small_run("add_mod11", 0, SMALL)
    drawn = ("fsd_null", "fourier_kan", "ablation", "patching")

    def rows(seed: int) -> list[dict[str, float | str]]:
        return measure(Question(trained(), seed=seed, spec=spec), [*drawn, "fsd"])

    first, again, other = rows(1), rows(1), rows(2)
    assert first == again
    differ = {column for one, two in zip(first, other, strict=True) for column in one if one[column] != two[column]}
    assert {"untrained_95", "renamed_95", "head0.0", "kan_trained_r2"} <= differ
    assert not differ & {"fsd", "kan_r2", "drop_attn0_zero", "drop_attn0_mean", "p_exact"}


@pytest.mark.parametrize("seed", [-1, 2**63, 10**30])
def test_a_seed_beyond_63_bits_is_rejected(seed: int) -> None:
    with pytest.raises(InputError, match=r"the seed must lie in \[0, 2\^63\), got -?[0-9]+"):
        Question(trained(), seed=seed)


def test_the_largest_seed_is_one() -> None:
    measure(
        Question(trained(), seed=2**63 - 1, spec=small_run("add_mod11", 0, SMALL)),
        ["fsd_null", "fourier_kan", "control"],
    )
