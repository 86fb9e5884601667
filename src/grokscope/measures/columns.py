"""The columns of every measure: one value for each run of a subject."""

from collections.abc import Callable, Mapping
from functools import lru_cache

import torch
from torch import Tensor

from grokscope.activations import Conditioning, control_basis
from grokscope.measures.ablation import Component, ablation, components_of
from grokscope.measures.concentration import gini, inverse_participation_ratio, spectral_entropy
from grokscope.measures.fourier_kan import fourier_kan, trained_fourier_kan
from grokscope.measures.logit_structure import logit_structure
from grokscope.measures.memorization import memorization
from grokscope.measures.norms import norms
from grokscope.measures.nulls import NullSample, exact_test, gaussian_null, strongest_mode_chances, uniform_p_value
from grokscope.measures.patching import Head, Receiver, drawn_pairs, head_patching, path_patching
from grokscope.measures.question import Question
from grokscope.measures.rank import fourier_rank, mean_explained
from grokscope.measures.restricted import VARIANTS, FilteredLoss, filtered_loss, variant_loss
from grokscope.measures.spectrum import mostly_varies, spectrum
from grokscope.measures.surrogates import answer_permutation_null, untrained_null
from grokscope.measures.synchronization import fsd, fsd_gen, fsd_top_k
from grokscope.measures.weight_spectra import embedding_spectrum, neuron_logit_spectrum
from grokscope.specs import RunSpec
from grokscope.specs.spec import WORD_LIMIT

__all__ = [
    "Columns",
    "ablation_columns",
    "concentration_columns",
    "control_columns",
    "embedding_columns",
    "fourier_kan_columns",
    "fsd_columns",
    "fsd_gen_columns",
    "fsd_null_columns",
    "fsd_top_k_columns",
    "logit_map_columns",
    "logits_columns",
    "loss_columns",
    "memorization_columns",
    "norms_columns",
    "patching_columns",
    "rank_columns",
    "removal_columns",
]

Columns = Mapping[str, Tensor]
PATCHED_PAIRS = 512  # pairs of inputs a patch is averaged over
NULL_DRAWS = 64  # untrained networks behind the decision null


def fsd_columns(question: Question) -> Columns:
    """FSD, its mode (1 is the first of the basis), and how much of the site it is read from."""
    found, means = fsd(question.spectrum().density), question.means()
    return {
        "fsd": found.fsd,
        "fsd_mode": _counted(found.mode, found.fsd),
        "constant_share": found.constant_share.where(means.finite, torch.nan),
        "answer_share": means.answer_share,
    }


def _counted(mode: Tensor, value: Tensor) -> Tensor:
    """A mode counted from 1, where the value that it belongs to is defined."""
    return (mode + 1).double().where(~value.isnan(), torch.nan)


def fsd_null_columns(question: Question) -> Columns:
    """FSD against its nulls."""
    waves = question.spectrum()
    found = fsd(waves.density)
    columns = {"p_uniform": uniform_p_value(found, seed=question.seed)}
    chances = strongest_mode_chances(tuple(question.basis.modes.dimensions.tolist()))
    columns["p_exact"] = exact_test(found, chances, seed=question.seed).p_value
    gaussian = gaussian_null(waves.dimensions, waves.power.shape[-1], seed=question.seed)
    columns |= {"p_gaussian": gaussian.p_value(found.fsd), "gaussian_95": gaussian.quantile(0.95).expand_as(found.fsd)}
    renamed = answer_permutation_null(
        question.subject.read(question.site).flatten(2),
        question.subject.task,
        draws=NULL_DRAWS,
        seed=question.seed,
        by=question.by,
        basis=question.basis_name,
    )
    columns |= {"p_renamed": renamed.p_value(found.fsd), "renamed_95": renamed.quantile(0.95)}
    if question.spec is not None:
        place = (question.site, question.by, question.basis_name, question.subject.device)
        untrained = _untrained(question.spec, NULL_DRAWS, question.seed, *place)
        columns |= {
            "p_untrained": untrained.p_value(found.fsd),
            "untrained_95": untrained.quantile(0.95).expand_as(found.fsd),
        }
    return columns


@lru_cache(maxsize=8)  # a run's checkpoints are measured some at a time, and all have this one null
def _untrained(
    spec: RunSpec, draws: int, seed: int, site: str, by: Conditioning, basis: str, device: torch.device
) -> NullSample:
    return untrained_null(spec, draws=draws, seed=seed, site=site, by=by, basis=basis, device=device)


def fsd_top_k_columns(question: Question) -> Columns:
    """FSD_k, where there are more modes than k."""
    density = question.spectrum().density
    return {f"fsd_{k}": fsd_top_k(density, k).fsd for k in (2, 3) if k < density.shape[-2]}


def fsd_gen_columns(question: Question) -> Columns:
    """FSD_gen for K = 1, and for 2 and 3 where there are more modes."""
    density = question.spectrum().density
    found = {f"fsd_gen_{k}": fsd_gen(density, k) for k in (1, 2, 3) if k == 1 or k < density.shape[-2]}
    first = found["fsd_gen_1"]
    return {name: result.fsd for name, result in found.items()} | {"fsd_gen_mode": _counted(first.mode, first.fsd)}


def control_columns(question: Question) -> Columns:
    """FSD of the same means over frequencies of the answers' index, in lexicographic and in random orders."""
    means, task = question.means().means, question.subject.task

    def read(relabelling: int | None) -> Tensor:
        return fsd(spectrum(means, control_basis(task, relabelling)).density).fsd

    seeds = [(question.seed + i) % WORD_LIMIT for i in range(question.reading.control_relabellings)]
    drawn = torch.stack([read(seed) for seed in seeds])
    return {"control_fsd": read(None), "control_mean": drawn.mean(dim=0), "control_max": drawn.amax(dim=0)}


def rank_columns(question: Question) -> Columns:
    """Median Fourier rank, share of rank 1, and R² of each neuron's best mode."""
    power = question.spectrum().power
    found = fourier_rank(power)
    return {"rank": found.median, "rank_one_share": found.rank_one_share, "r2_rank_1": mean_explained(power)}


def concentration_columns(question: Question) -> Columns:
    """The rivals, of neurons and of the embedding."""
    power = question.spectrum().power
    embedding = embedding_spectrum(question.subject, question.basis).power[..., None]
    kinds = {"ipr": inverse_participation_ratio, "gini": gini, "entropy": spectral_entropy}
    neurons = {name: of(power).median for name, of in kinds.items()}
    return neurons | {f"embedding_{name}": of(embedding).pooled for name, of in kinds.items()}


def embedding_columns(question: Question) -> Columns:
    """The strongest mode of the embedding."""
    found = embedding_spectrum(question.subject, question.basis)
    share, mode = found.share.max(dim=-1)
    rank = fourier_rank(found.power[..., None]).median
    return {"embedding_peak_share": share, "embedding_mode": _counted(mode, share), "embedding_rank": rank}


def logit_map_columns(question: Question) -> Columns:
    """Synchronisation of the neuron-to-logit map."""
    waves = neuron_logit_spectrum(question.subject, question.basis)
    found = fsd(waves.density)
    return {
        "logit_map_fsd": found.fsd,
        "logit_map_mode": _counted(found.mode, found.fsd),
        "logit_map_rank": fourier_rank(waves.power).median,
    }


def logits_columns(question: Question) -> Columns:
    """Share of the logits along the modes' directions."""
    found = logit_structure(question.subject, question.by, question.basis)
    share, mode = found.explained.max(dim=-1)
    return {"logit_share": found.total, "logit_peak_share": share, "logit_mode": _counted(mode, share)}


def loss_columns(name: str) -> Callable[[Question], Columns]:
    """The columns of a restricted or excluded loss."""

    def compute(question: Question) -> Columns:
        found = _paper_loss(question) if name == "paper_restricted" else _published_loss(question, name)
        parts = {"": found.loss, "_all": found.scores.loss, "_train": found.scores.train_loss}
        parts |= {"_validation": found.scores.validation_loss, "_modes": found.modes.sum(dim=-1).double()}
        return {f"{name}{part}": value for part, value in parts.items()}

    return compute


def _published_loss(question: Question, name: str) -> FilteredLoss:
    modes = question.keys(VARIANTS[name].count)
    return variant_loss(question.subject, name, modes, basis=question.basis, by=question.by)


def _paper_loss(question: Question) -> FilteredLoss:
    """The one loss with choices left open: how many modes, which filter, which pairs (`ReadingSpec`)."""
    reading = question.reading
    keys = question.keys(reading.restricted_modes)
    return filtered_loss(
        question.subject,
        question.last_site,
        reading.restricted_modes if keys is None else keys,
        kind=reading.restricted_filter,
        basis=question.basis,
        by=question.by,
        scored_on=reading.restricted_scored_on,
    )


def removal_columns(question: Question) -> Columns:
    """What is left without the dominant mode of the site FSD reads."""
    found = filtered_loss(question.subject, question.site, 1, "remove", basis=question.basis, by=question.by)
    names = ("accuracy", "train_accuracy", "validation_accuracy", "loss")
    has_mode = mostly_varies(question.spectrum().power)
    return {f"without_mode_{name}": getattr(found.scores, name).where(has_mode, torch.nan) for name in names}


def fourier_kan_columns(question: Question) -> Columns:
    """Fits of the conditioned means by cosines and sines."""
    means, reading = question.means().means, question.reading
    options = (question.basis, reading.fourier_kan_penalty, reading.fourier_kan_frequencies)
    exact = fourier_kan(means, *options)
    trained = trained_fourier_kan(means, *options, seed=question.seed)
    kept = exact.kept.double().where(~exact.is_constant, torch.nan).nanquantile(0.5, dim=-1)
    means_of_fits = {"kan_r2": exact.r_squared.nanmean(dim=-1), "kan_trained_r2": trained.r_squared.nanmean(dim=-1)}
    varies = mostly_varies(question.spectrum().power)
    found = means_of_fits | {"kan_kept": kept, "kan_agreement": trained.agreement}
    return {name: value.where(varies, torch.nan) for name, value in found.items()}


def ablation_columns(question: Question) -> Columns:
    """Accuracy lost without each component: zeros for all, mean and resampling for whole branches."""
    found: dict[str, Tensor] = {}
    for method in ("zero", "mean", "resample"):
        parts = components_of(question.subject.architecture)
        chosen = [part for part in parts if part.head is None or method == "zero"]
        for row in ablation(question.subject, chosen, method, seed=question.seed):
            name = f"{_short(row.component)}_{method}"
            found[f"drop_{name}"] = row.accuracy_drop
            found[f"validation_drop_{name}"] = row.validation_accuracy_drop
    return found


def _short(component: Component) -> str:
    """`attn0`, `mlp1`, or `head0.3`."""
    block = component.site.split(".")[1]
    if component.head is not None:
        return f"head{block}.{component.head}"
    return f"{'attn' if component.site.endswith('attn_out') else 'mlp'}{block}"


def patching_columns(question: Question) -> Columns:
    """What each head's output, and its direct path to the logits, carry of the difference between two inputs."""
    subject, found = question.subject, {}
    pairs = drawn_pairs(subject.task, PATCHED_PAIRS, question.seed)
    for block in range(subject.architecture.layers):
        for index in range(subject.architecture.heads):
            head = Head(block, index)
            found[f"head{block}.{index}"] = head_patching(subject, *pairs, head).share
            found[f"head{block}.{index}_to_logits"] = path_patching(subject, *pairs, head, Receiver("logits")).share
    return found


def memorization_columns(question: Question) -> Columns:
    """Accuracies, losses and their gap."""
    found = memorization(question.subject)
    names = ("train_accuracy", "validation_accuracy", "train_loss", "validation_loss")
    return {name: getattr(found, name) for name in names} | {"gap": found.generalization_gap}


def norms_columns(question: Question) -> Columns:
    """Frobenius norms, total and by block."""
    found = norms(question.subject)
    return {"norm": found.total} | {f"norm_{block}": value for block, value in found.by_block.items()}
