"""Every measure by name: what it is, who defined it, what it costs, what nothing would give, and how it is computed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.measures import columns
from grokscope.measures.columns import Columns
from grokscope.measures.question import Question
from grokscope.measures.restricted import VARIANTS, Variant

__all__ = ["MEASURES", "Measure", "Row", "chosen", "measure", "measure_named"]

Row = dict[str, float | str]
"""A run's columns."""


@dataclass(frozen=True)
class Measure:
    """One entry of the registry."""

    title: str
    """What it is, in a few words."""
    formula: str
    """Its definition."""
    source: str
    """Who defined it, and where."""
    cost: str
    """What has to be computed."""
    null: str
    """What it is where nothing has been learnt, and how that is known."""
    undefined: str
    """When it is NaN."""
    columns: Mapping[str, str]
    """The columns it gives, each with its meaning; `{a,b}` stands for several, `…` for all there are in the model."""
    compute: Callable[[Question], Columns]
    """The columns, with one value for each run."""


def measure_named(name: str) -> Measure:
    """The measure with this name."""
    if name not in MEASURES:
        raise InputError(f"there is no measure {shown(name)}{did_you_mean(name, MEASURES)}")
    return MEASURES[name]


def chosen(names: Iterable[str]) -> dict[str, Measure]:
    """The measures with these names, each once; at least one."""
    found = {name: measure_named(name) for name in names}
    if not found:
        raise InputError("no measure was asked for; `grokscope measure` lists them")
    return found


def measure(question: Question, names: Iterable[str]) -> list[Row]:
    """One row for each run of the subject: the columns of every measure asked for.

    A value that is undefined is NaN, and the column `undefined` says why; neighbours are not touched by it. A subject
    of a single run whose activations are not numbers is refused instead.
    """
    rows: list[Row] = [{} for _ in range(len(question.subject))]
    for one in chosen(names).values():
        for column, values in one.compute(question).items():
            for row, value in zip(rows, values.tolist(), strict=True):
                row[column] = value if isfinite(value) else nan
    undefined = [[column for column, value in row.items() if value != value] for row in rows]
    for run, (row, columns_without) in enumerate(zip(rows, undefined, strict=True)):
        row["undefined"] = _reason(question, run, columns_without) if columns_without else ""
    return rows


def _reason(question: Question, run: int, undefined: Sequence[str]) -> str:
    """Why some columns of a run are undefined."""
    means, waves, site = question.means(), question.spectrum(), question.site
    for name, weight in question.subject.weights.items():
        if not weight[run].isfinite().all():
            return f"weights in {name} are not numbers"
    if not means.finite[run]:
        return f"activations at {site} are not numbers"
    share = float(waves.is_constant[run].double().mean())
    if share >= 0.5:
        return f"{share:.0%} of the neurons at {site} are constant over the answers"
    if len(waves.dimensions) == 1:
        return "the basis has a single mode: there is nothing to agree on"
    more = f" and {len(undefined) - 1} more columns" if len(undefined) > 1 else ""
    return f"{undefined[0]}{more}: not defined for this model or checkpoint"


FORWARD = "one forward pass of all pairs"
BLOCK_0 = "block 0 of all pairs, shared by all measures that read it"
MOSTLY_CONSTANT = "most neurons are constant over the answers, or activations are not numbers"
NOT_NUMBERS = "weights or logits are not numbers"
UNTRAINED = "untrained networks of the same spec (see fsd_null): their neurons agree before anything is learnt"
FILTERED = {
    "logits": "the logits' modes over the answers",
    "cubes": "the logits' parts along χ(x·y·z⁻¹)",
    "neurons": "the last neurons' modes over the answers",
}


def _loss(name: str, variant: Variant) -> Measure:
    """A restricted or excluded loss."""
    who, _, how = variant.definition.partition(": ")
    is_excluded, has_choices = variant.change == "remove", name == "paper_restricted"
    scored_on = variant.scored_on + (", unless `restricted_scored_on` names others" if has_choices else "")
    return Measure(
        title=f"{'Excluded' if is_excluded else 'Restricted'} loss, by {FILTERED[variant.level]}",
        formula=how,
        source=who,
        cost=FORWARD + " with the filter, and one or two to know the modes",
        null="ln(classes) is chance" + ("; a model that does not use the modes keeps its loss" if is_excluded else ""),
        undefined=NOT_NUMBERS,
        columns={
            name: f"the loss in nats on the pairs it is defined on ({scored_on})",
            f"{name}_{{all,train,validation}}": "the same on these pairs",
            f"{name}_modes": "how many modes were kept or removed",
        },
        compute=columns.loss_columns(name),
    )


MEASURES: dict[str, Measure] = {
    "fsd": Measure(
        title="Frequency Synchronization Degree: how far neurons agree on one dominant mode",
        formula="FSD = (max_k par(k) − c) / (1 − c), par(k) = share of neurons whose strongest mode is k, c = 1/modes",
        source="the paper, Definition 2 and Algorithm 1",
        cost=BLOCK_0,
        null=UNTRAINED + "; at p = 97 with 512 neurons about 0.06 to 0.30",
        undefined=MOSTLY_CONSTANT + "; there is a single mode",
        columns={
            "fsd": "FSD, in [0, 1]",
            "fsd_mode": "the mode most neurons share, counted from 1; on Z_n the frequency",
            "constant_share": "share of neurons that are constant over the answers and do not vote",
            "answer_share": "variance of the conditioned means over that of the activations: how small a thing is read",
        },
        compute=columns.fsd_columns,
    ),
    "fsd_null": Measure(
        title="FSD against its nulls",
        formula="p = (1 + #{draws ≥ FSD}) / (1 + draws)",
        source="the paper, Algorithm 1 (uniform); docs/paper-audit.md §4 (the others)",
        cost=f"{columns.NULL_DRAWS} untrained networks, and 1,000 draws",
        null="independent neurons: uniform on odd Z_n, exact and Gaussian on any group; renamed and untrained decide",
        undefined=MOSTLY_CONSTANT,
        columns={
            "p_uniform": "Algorithm 1: dominant modes drawn uniformly",
            "p_exact": "independent Gaussian neurons without drawing: the exact distribution of the peak; on odd Z_n "
            "the exact counterpart of p_uniform",
            "p_gaussian": "independent Gaussian neurons: chi-square power in every mode",
            "gaussian_95": "their 95 % quantile of FSD",
            "p_renamed": "the same activations with the tokens renamed at random, which destroys the rule alone",
            "renamed_95": "their 95 % quantile of FSD",
            "p_untrained": "untrained networks of the same spec, where it is known: the null that decides",
            "untrained_95": "their 95 % quantile of FSD",
        },
        compute=columns.fsd_null_columns,
    ),
    "fsd_k": Measure(
        title="FSD of the k best modes together",
        formula="FSD_k = (max_{|S| = k} mean_{f ∈ S} par_k(f) − k/modes) / (1 − k/modes), par_k by k strongest modes",
        source="the paper, Definition 2, top-k extension",
        cost=BLOCK_0,
        null=UNTRAINED,
        undefined=MOSTLY_CONSTANT,
        columns={"fsd_{2,3}": "FSD_k for k = 2 and 3, where the basis has more modes than k"},
        compute=columns.fsd_top_k_columns,
    ),
    "fsd_gen": Measure(
        title="FSD over the irreps of any group",
        formula="FSD_gen = (max_ρ par_K(ρ) − K/modes) / (1 − K/modes), strongest by P_j(ρ) per dimension",
        source="the paper, §7",
        cost=BLOCK_0,
        null=UNTRAINED + "; on S5 they reach 0.64",
        undefined=MOSTLY_CONSTANT,
        columns={
            "fsd_gen_{1,2,3}": "FSD_gen for K = 1, which is FSD, and 2, 3 where the basis has more modes than K",
            "fsd_gen_mode": "the mode most neurons share at K = 1, counted from 1",
        },
        compute=columns.fsd_gen_columns,
    ),
    "control": Measure(
        title="The Z_n control: FSD over frequencies of the answers' index",
        formula="FSD of A[s, j] with s in lexicographic order, or in random orders, whatever the group is",
        source="the paper, §7 and Table 11",
        cost=BLOCK_0,
        null=UNTRAINED,
        undefined=MOSTLY_CONSTANT,
        columns={
            "control_fsd": "elements in lexicographic order; for addition it is FSD itself",
            "control_mean": "mean over random orders (ReadingSpec.control_relabellings)",
            "control_max": "the largest of them",
        },
        compute=columns.control_columns,
    ),
    "rank": Measure(
        title="Fourier rank: how many modes a neuron needs",
        formula="R_j(τ) = min{k : the k strongest modes hold the share τ = 0.90 of neuron j's power}",
        source="the paper, Definition 1",
        cost=BLOCK_0,
        null="at p = 97 white noise has rank about 29, untrained networks 25 or 26",
        undefined=MOSTLY_CONSTANT,
        columns={
            "rank": "median over the neurons that vary",
            "rank_one_share": "share of those with rank 1",
            "r2_rank_1": "mean R² of each neuron's best single mode (Table 6)",
        },
        compute=columns.rank_columns,
    ),
    "concentration": Measure(
        title="Rivals of rank: inverse participation ratio, Gini, spectral entropy",
        formula="IPR = Σ q_k²; G = Σ_i (2i − m − 1) q_(i) / m; H = −Σ q_k ln q_k / ln m, of the shares q of m modes",
        source="standard; used on embeddings and neurons by work on grokking before the paper",
        cost=BLOCK_0 + "; the embedding costs nothing",
        null="white noise over m modes of dimension 2: IPR 2/(m + 1), G about 1/2, H about 1 − 0.42/ln m",
        undefined=MOSTLY_CONSTANT,
        columns={
            "{ipr,gini,entropy}": "median over the neurons that vary",
            "embedding_{ipr,gini,entropy}": "of the embedding's power over modes",
        },
        compute=columns.concentration_columns,
    ),
    "embedding": Measure(
        title="Spectrum of the token embedding",
        formula="share_k = ‖P_k W_E‖² / Σ_l ‖P_l W_E‖² over the symbols in the basis",
        source="Nanda et al. 2023, from which key frequencies are read",
        cost="the weights alone",
        null="every mode has the share of its dimension",
        undefined=NOT_NUMBERS,
        columns={
            "embedding_peak_share": "share of the strongest mode",
            "embedding_mode": "that mode, counted from 1",
            "embedding_rank": "modes that hold 90 %",
        },
        compute=columns.embedding_columns,
    ),
    "logit_map": Measure(
        title="Synchronisation of the neuron-to-logit map",
        formula="FSD and median rank of the columns of (W_out W_U)ᵀ over the answers",
        source="Nanda et al. 2023 (W_L); Definition 1 and 2 applied to it",
        cost="the weights alone",
        null="untrained weights",
        undefined="the model has no MLP (refused), most columns are constant, or weights are not numbers",
        columns={
            "logit_map_fsd": "FSD of the map",
            "logit_map_mode": "its dominant mode, counted from 1",
            "logit_map_rank": "its median rank",
        },
        compute=columns.logit_map_columns,
    ),
    "logits": Measure(
        title="Share of the logits along cos(2πk(a + b − c)/p)",
        formula="Σ_k ⟨L, C_k⟩² / (‖C_k‖² ‖L‖²), C_k[x, c] = Σ_ρ χ_ρ(s_x c⁻¹), L centred over the classes",
        source="the paper, Eq. 1 and §2; Nanda et al. 2023; Chughtai et al. 2023 for groups",
        cost=FORWARD,
        null="untrained networks: near 0",
        undefined="the logits do not vary over the classes, or are not numbers",
        columns={
            "logit_share": "share along all modes' directions",
            "logit_peak_share": "share along the strongest",
            "logit_mode": "that one, counted from 1",
        },
        compute=columns.logits_columns,
    ),
    **{name: _loss(name, variant) for name, variant in VARIANTS.items()},
    "removal": Measure(
        title="What is left without the dominant mode of block 0",
        formula="accuracy with mode k* of A[s, j] subtracted from every neuron that FSD reads",
        source="docs/paper-audit.md §4: the causal test of a causal precursor",
        cost=FORWARD + " with the edit, and block 0 once",
        null="the accuracy without the edit (memorization)",
        undefined=MOSTLY_CONSTANT,
        columns={"without_mode_{accuracy,train_accuracy,validation_accuracy,loss}": "scores after the removal"},
        compute=columns.removal_columns,
    ),
    "fourier_kan": Measure(
        title="FourierKAN: each neuron as a sparse sum of cosines and sines",
        formula="A_j(s) ≈ Σ_{k ≤ K} a_k cos(2πks/p) + b_k sin(2πks/p) with an L1 penalty relative to its largest term",
        source="the paper, §4 and Table 6",
        cost=BLOCK_0 + "; the exact fit costs nothing, the trained one some seconds",
        null="untrained networks: their fits keep most frequencies, and R² and agreement are high already at step 0",
        undefined="the basis is not a Fourier basis (refused); " + MOSTLY_CONSTANT,
        columns={
            "kan_r2": "mean R² of the exact fit over the neurons that vary",
            "kan_trained_r2": "mean R² of the fit by gradient descent (Table 6)",
            "kan_kept": "median number of frequencies the exact fit keeps",
            "kan_agreement": "share of neurons whose trained fit has the DFT's dominant frequency",
        },
        compute=columns.fourier_kan_columns,
    ),
    "ablation": Measure(
        title="Accuracy lost without each block's attention and MLP, and without each head",
        formula="Δ_c = accuracy − accuracy with component c's output replaced by zeros, its mean, or another input's",
        source="the paper, §4 and Table 7",
        cost=FORWARD + " for each component and kind",
        null="0 for a component that is not used",
        undefined=NOT_NUMBERS,
        columns={
            "drop_{attn0,mlp0,…}_{zero,mean,resample}": "accuracy lost on all pairs without a branch",
            "drop_head{0.0,…}_zero": "without one head",
            "validation_drop_…": "the same on the validation pairs",
        },
        compute=columns.ablation_columns,
    ),
    "patching": Measure(
        title="Path patching: what a head carries from input to answer",
        formula="share = mean(d_patched − d_clean) / mean(d_corrupt − d_clean), d = logit(answer of x) − logit(of x′)",
        source="Wang et al. 2022; the paper names it as missing",
        cost=f"{columns.PATCHED_PAIRS} pairs of inputs, some passes for each head",
        null="0 for a head that carries nothing; shares of all heads need not add up to 1",
        undefined="the model has no attention (refused), the answers of x and x′ have equal logits, or are not numbers",
        columns={
            "head{0.0,…}": "activation patching: the head's output from x′, read by all",
            "head{0.0,…}_to_logits": "path patching: read by the logits alone",
        },
        compute=columns.patching_columns,
    ),
    "memorization": Measure(
        title="Accuracies, losses and the generalisation gap",
        formula="gap(t) = acc_train(t) − acc_val(t)",
        source="the paper, §4",
        cost=FORWARD,
        null="accuracy 1/classes, loss ln(classes), gap 0",
        undefined=NOT_NUMBERS,
        columns={
            "{train,validation}_{accuracy,loss}": "on the training pairs by their labels, on all others by the answers",
            "gap": "train accuracy minus validation accuracy",
        },
        compute=columns.memorization_columns,
    ),
    "norms": Measure(
        title="Weight norms",
        formula="‖W‖_F = √Σ w², of all parameters together and of each block",
        source="the paper, §5.3 and §6",
        cost="the weights alone",
        null="the norm at initialisation",
        undefined=NOT_NUMBERS,
        columns={"norm": "all parameters", "norm_…": "one block's"},
        compute=columns.norms_columns,
    ),
}
