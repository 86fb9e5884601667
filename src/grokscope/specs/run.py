"""A run, described completely: what is learnt, by what, from which seeds, how, and how often it is evaluated.

The defaults are the paper's where it fixes them and those of `docs/paper-audit.md` §2 where it leaves them open.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

from grokscope.errors import InputError, shown
from grokscope.specs.control import ClosedLoop
from grokscope.specs.norm_hold import NormHold
from grokscope.specs.release import Release
from grokscope.specs.spec import HASH_CHARACTERS, WORD_LIMIT, Spec, require

__all__ = ["Architecture", "Cadence", "Fork", "Initialization", "RunSpec", "Seeds", "Training", "Trigger"]

Branch = Literal["on", "dropped", "norm"]
Signal = Literal["fsd", "train_accuracy", "step", "random"]
TABLE = "table:"
# A user's own group, and the digest of its file that says which content is meant.
PINNED_TABLE = re.compile(rf"{TABLE}(.+)#([0-9a-f]{{16}})", re.DOTALL)
# A user's own rows: a file of them, or a function that gives them, and the digest of the file.
OWN_ROWS = re.compile(r"(.+\.(?:npz|parquet)|.+\.py:[A-Za-z_][A-Za-z0-9_]*)(?:#([0-9a-f]{16}))?", re.DOTALL)


def is_own_file(task: str) -> bool:
    """Whether a task is a file of the user's: a table, rows, or a function that gives rows.

    >>> [is_own_file(name) for name in ("add_mod97", "table:mine.json", "data/mine.npz", "mine.py:rows")]
    [False, True, True, True]
    """
    return task.startswith(TABLE) or OWN_ROWS.fullmatch(task) is not None


@dataclass(frozen=True)
class Seeds(Spec):
    """Three independent sources of chance; `RunSpec.with_seed` sets all of them."""

    split: int = 0
    """Decides which rows are trained on (and the permutation of shuffled labels)."""
    initialization: int = 0
    """Draws the initial weights."""
    data_order: int = 0
    """Orders the batches of every epoch (and draws dropout masks)."""

    def check(self) -> None:
        """Seeds are 63-bit."""
        for name, seed in self.to_dict().items():
            require(0 <= seed < WORD_LIMIT, f"the {name} seed must lie in [0, 2^63)", seed)


# What describes a transformer alone, and an MLP alone.
OF_TRANSFORMERS = ("heads", "attention", "mlp", "causal", "layer_norm", "final_norm", "readout")
OF_MLPS = ("embedded", "hidden_norm")
MOST_LAYERS = 8


@dataclass(frozen=True)
class Architecture(Spec):
    """The transformer of the paper's Appendix B and its relatives, or a plain MLP. Runs of one share a stack."""

    layers: int = 2
    """Blocks of attention and MLP, at most 8; hidden layers of a plain MLP, of which 0 make a linear model."""
    width: int = 128
    """d_model, the residual stream's width; of an MLP with learnt embeddings, their width."""
    heads: int = 4
    """Attention heads; each has width / heads dimensions."""
    mlp_width: int = 512
    """d_mlp, hidden neurons per block or layer."""
    attention: Branch = "on"
    """`on`; `dropped`: x passes unchanged; `norm`: x + LayerNorm(x), the other reading of "identity"."""
    mlp: Branch = "on"
    """As `attention`, for the MLP branch."""
    causal: bool = False
    """Whether a position sees only itself and those before it."""
    layer_norm: bool = True
    """Pre-LayerNorm in every branch and before the head; without it, Nanda et al.'s model."""
    final_norm: bool | None = None
    """Whether there is a LayerNorm before the head, where that differs from `layer_norm`: `false` leaves out the final
    one alone, `true` has it alone; None is as `layer_norm` says."""
    biases: bool = True
    """Biases in every linear map."""
    activation: Literal["gelu", "relu", "square"] = "gelu"
    """The neurons' nonlinearity; GELU is exact, not the tanh approximation; `square` is x², of quadratic networks."""
    readout: Literal["last", "pooled"] = "last"
    """`last`: the separator's position; `pooled`: a's and b's embeddings are summed into it, which lets a
    model without attention see its inputs (the fair MLP-only control)."""
    kind: Literal["transformer", "mlp"] = "transformer"
    """`mlp`: a plain MLP, W_U a(… a(W_in x + b) …) + b_U with a the activation. Of tokens it reads the one-hot vectors
    of all positions side by side. What describes attention and the residual stream must keep its default there."""
    embedded: bool = False
    """Whether an MLP reads learnt embeddings of `width` dimensions in place of one-hot vectors."""
    hidden_norm: bool = False
    """Whether an MLP has a LayerNorm before every activation."""
    temperature: float = 1.0
    """τ, by which logits (or real outputs) are divided, in training and wherever they are read. It is not learnt and no
    part of ‖W‖; a fork may have another than its parent."""

    @property
    def has_final_norm(self) -> bool:
        """Whether a transformer's stream is normalised before the head.

        >>> Architecture().has_final_norm, Architecture(final_norm=False).has_final_norm
        (True, False)
        """
        return self.layer_norm if self.final_norm is None else self.final_norm

    @property
    def head_width(self) -> int:
        """Dimensions of one head, width / heads."""
        return self.width // self.heads

    @property
    def meaningless(self) -> tuple[str, ...]:
        """Settings that say nothing of a model of this kind, and keep their defaults.

        >>> "heads" in Architecture(kind="mlp").meaningless, "heads" in Architecture().meaningless
        (True, False)
        """
        if self.kind == "transformer":
            return OF_MLPS
        return OF_TRANSFORMERS if self.embedded else (*OF_TRANSFORMERS, "width")

    def check(self) -> None:
        """Sizes are positive, heads divide the width, and something is computed."""
        self.require_each("be at least 1", "width", "heads", "mlp_width")
        self.require_each("be positive", "temperature")
        is_mlp = self.kind == "mlp"
        self.require_each("be at least 0" if is_mlp else "be at least 1", "layers")
        require(self.layers <= MOST_LAYERS, f"layers must be at most {MOST_LAYERS}", self.layers)
        for field in fields(self):
            value = getattr(self, field.name)
            is_default = field.name not in self.meaningless or value == field.default
            require(is_default, f"{field.name} has no meaning for kind {self.kind} and must be left out", value)
        if not is_mlp:
            self._check_transformer()

    def _check_transformer(self) -> None:
        require(self.width % self.heads == 0, f"heads must divide the width {self.width}", self.heads)
        branches = (self.attention, self.mlp)
        require(branches != ("dropped", "dropped"), "attention and mlp must not both be dropped", branches)
        for name, branch in zip(("attention", "mlp"), branches, strict=True):
            has_norm = self.layer_norm or branch != "norm"
            require(has_norm, f"{name} cannot be a LayerNorm when layer_norm is false", branch)
        is_other = self.final_norm is None or self.final_norm != self.layer_norm
        require(is_other, "final_norm must be left out where it says what layer_norm says", self.final_norm)


@dataclass(frozen=True)
class Initialization(Spec):
    """How the weights begin."""

    scheme: Literal["pytorch", "normal"] = "pytorch"
    """`pytorch`: Linear U(±1/√fan_in), biases too, attention in-projection Xavier over the packed matrix with
    zero biases; `normal`: every matrix N(0, 1/width) and zero biases, as Nanda et al., of an MLP N(0, 1/fan_in)."""
    embedding_std: float = 1.0
    """Standard deviation of token and position embeddings, before `scale`."""
    scale: float = 1.0
    """What every drawn number is multiplied by: embeddings, matrices and their biases, not LayerNorms. Large initial
    weights make a model memorise first and delay grokking (Liu et al. 2022, Omnigrok)."""

    def check(self) -> None:
        """A standard deviation and a scale are positive."""
        self.require_each("be positive", "embedding_std", "scale")


@dataclass(frozen=True)
class Training(Spec):
    """The optimiser and its data. Runs of one stack share batch size, gradient and optimiser, dropout and clipping."""

    steps: int = 15_000
    """Optimiser steps."""
    learning_rate: float = 1e-3
    """η."""
    beta1: float = 0.9
    """Decay of the first moment."""
    beta2: float = 0.999
    """Decay of the second moment."""
    epsilon: float = 1e-8
    """Added to √v̂."""
    weight_decay: float | None = 1.0
    """λ: each step multiplies every decayed parameter by 1 − ηλ; None where it is not known, of a monitored run."""
    decay_parameters: Literal["all", "matrices"] = "all"
    """What is decayed: every parameter, or weight matrices and embeddings only, sparing biases and LayerNorm."""
    weight_decay_schedule: tuple[tuple[int, float], ...] = ()
    """(step, λ) pairs in order: from that step on, λ is this."""
    embedding_decay: float = 1.0
    """What λ is multiplied by for what reads the inputs: token and position embeddings, an MLP's map of vectors."""
    matrix_decay: float = 1.0
    """The same for the matrices between embeddings and head."""
    vector_decay: float = 1.0
    """The same for biases and LayerNorms, where these are decayed."""
    head_decay: float = 1.0
    """The same for the last map, to the classes or outputs."""
    batch_size: int | None = 512
    """Rows per step; None trains on the whole training set at once."""
    sampling: Literal["epochs", "replacement"] = "epochs"
    """`epochs`: shuffled passes whose last batch is partial; `replacement`: every batch drawn anew."""
    dropout: float = 0.0
    """Share of each branch's output that is dropped before it is added to the residual stream; of an MLP, of each
    hidden layer's neurons."""
    warmup_steps: int = 0
    """η rises linearly from 0 over this many steps."""
    clip_norm: float | None = None
    """The gradient is scaled down to this norm when it exceeds it."""
    gradient: Literal["plain", "grokfast", "orthogonal", "grokfast_window"] = "plain"
    """What AdamW is given: the gradient g; `grokfast`: g + ℓμ with its moving average μ (Grokfast-EMA, Lee et al.
    2024); `grokfast_window`: the same with the mean of the last gradients for μ, once there are enough (Grokfast-MA);
    `orthogonal`: g without its part along the weights, at its former length (⊥Grad, Prieto et al. 2025)."""
    grokfast_alpha: float = 0.98
    """α of μ ← αμ + (1 − α)g; Grokfast's published default."""
    grokfast_lamb: float = 2.0
    """ℓ, how much of μ is added (the paper's λ, which is weight decay here); Grokfast's published default."""
    grokfast_window: int = 100
    """How many of the last gradients `grokfast_window` averages, this step's included; runs of a stack share it."""
    optimizer: Literal["adamw", "muon", "adam"] = "adamw"
    """What moves the matrices between embeddings and head: AdamW, or `muon` (Jordan et al. 2024): their momentum made
    orthogonal by five Newton–Schulz steps. All other parameters are moved by AdamW, and λ has one meaning for all. Or
    all by `adam`, whose decay is coupled: λw is added to the (changed) gradient, as `torch.optim.Adam` does."""
    muon_learning_rate: float = 0.02
    """Muon's own η; its decay is 1 − ηλ with AdamW's η, which is wd = ηλ / muon_learning_rate of `torch.optim.Muon`."""
    muon_momentum: float = 0.95
    """μ of Muon's momentum, which is Nesterov's."""
    muon_precision: Literal["weights", "bfloat16"] = "weights"
    """In which matrices are made orthogonal: that of the weights, or bfloat16 as in `torch.optim.Muon`."""
    loss: Literal["cross_entropy", "mse", "stablemax"] = "cross_entropy"
    """What is minimised: cross-entropy, of softmax or of `stablemax` (Prieto et al. 2025), or the squared error,
    averaged over outputs (Gromov 2023) and examples. Of classes its targets are one-hot vectors. Real answers need
    `mse`."""

    def check(self) -> None:
        """Ranges, and an ordered schedule."""
        self.require_each("be at least 1", "steps", "batch_size", "grokfast_window")
        self.require_each("be positive", "learning_rate", "epsilon", "clip_norm", "muon_learning_rate")
        self.require_each("lie in [0, 1)", "beta1", "beta2", "dropout", "grokfast_alpha", "muon_momentum")
        factors = tuple(f"{group}_decay" for group in ("embedding", "matrix", "vector", "head"))
        self.require_each("be at least 0", *factors)
        self.require_each("be at least 0", "grokfast_lamb", "warmup_steps")
        begins = () if self.weight_decay is None else (self.weight_decay,)
        for decay in (*begins, *(decay for _, decay in self.weight_decay_schedule)):
            require(decay >= 0, "weight_decay must be at least 0", decay)
            self.require_decay(decay, "weight_decay")
        changes = [step for step, _ in self.weight_decay_schedule]
        ordered = changes == sorted(set(changes)) and all(step >= 1 for step in changes)
        require(ordered, "weight_decay_schedule must have increasing steps from 1 on", changes)
        late = [step for step in changes if step >= self.steps]
        require(not late, f"weight_decay_schedule must change before the last step {self.steps}", late)

    def require_decay(self, weight_decay: float, name: str) -> None:
        """Reject a λ that no step could take: 1 − ηλ must stay above 0 for every group of parameters.

        >>> Training().require_decay(5.0, "weight_decay")
        """
        product = self.learning_rate * weight_decay
        require(product < 1, f"learning_rate × {name} must stay below 1", product)
        for group in ("embedding", "matrix", "vector", "head"):
            own = product * getattr(self, f"{group}_decay")
            require(own < 1, f"learning_rate × {name} × {group}_decay must stay below 1", own)

    @property
    def known_weight_decay(self) -> float:
        """λ, which is known of every run that is trained here; rejected where it is not."""
        if self.weight_decay is None:
            raise InputError("weight_decay is not known of a run that was only monitored, without its optimiser")
        return self.weight_decay

    @property
    def decay_label(self) -> str:
        """λ as a label says it.

        >>> Training(weight_decay=2).decay_label, Training(weight_decay=None).decay_label
        ('λ = 2', 'λ unknown')
        """
        return "λ unknown" if self.weight_decay is None else f"λ = {self.weight_decay:g}"


# Where each signal fires unless the trigger says otherwise.
THRESHOLDS: dict[Signal, float] = {"fsd": 0.80, "train_accuracy": 0.99, "step": 300.0}


@dataclass(frozen=True)
class Trigger(Spec):
    """One change of λ, made when a signal is seen: the accelerator of the paper's §6 and its controls."""

    signal: Signal = "fsd"
    """What is watched; `random` fires at a step drawn uniformly from the run's data-order seed."""
    at_least: float | None = None
    """Fires at the first evaluation at which the signal reaches this; None is the signal's own threshold (FSD 0.80,
    train accuracy 0.99, step 300), and the only choice for `random`, which reaches nothing."""
    weight_decay: float = 3.0
    """λ_high."""
    every: int = 100
    """Steps between evaluations."""
    restore_after_grokking: bool = False
    """Whether λ returns to its former value at the first evaluation with validation accuracy ≥ 0.95."""

    @property
    def threshold(self) -> float | None:
        """What the signal has to reach; None for `random`.

        >>> Trigger("train_accuracy").threshold
        0.99
        """
        return THRESHOLDS.get(self.signal) if self.at_least is None else self.at_least

    def check(self) -> None:
        """A positive cadence, a decay of at least 0, and a threshold that the signal can have."""
        self.require_each("be at least 1", "every")
        self.require_each("be at least 0", "weight_decay")
        if self.at_least is not None:
            require(self.signal != "random", "at_least must be left out for random", self.at_least)
            self.require_each("be at least 0", "at_least")
            is_share = self.signal in ("fsd", "train_accuracy")
            require(self.at_least <= 1 or not is_share, f"at_least must lie in [0, 1] for {self.signal}", self.at_least)


@dataclass(frozen=True)
class Fork(Spec):
    """Where a run begins if not at step 0."""

    parent: str
    """The content hash of the run it continues."""
    step: int
    """The parent's step at which it starts."""
    moments: Literal["kept", "reset"] = "kept"
    """Whether Adam's moments and step count come along."""
    scale: float = 1.0
    """What all weights are multiplied by: the paper's confounded first attempt at moving the norm (§6)."""
    norm: Literal["free", "frozen", "matched"] = "free"
    """After each step the weights keep their norm (`free`), are rescaled to that at the fork (`frozen`), or to that of
    the parent at the same step (`matched`): tells a norm that is a threshold from one that is a consequence."""

    def check(self) -> None:
        """A parent is a hash, a step is at least 0."""
        hexadecimal = len(self.parent) == 16 and set(self.parent) <= set("0123456789abcdef")
        require(hexadecimal, "parent must be a run's content hash of 16 hexadecimal digits", self.parent)
        require(self.step >= 0, "the fork's step must be at least 0", self.step)
        require(0 < self.scale < math.inf, "scale must be positive", self.scale)


@dataclass(frozen=True)
class Cadence(Spec):
    """Steps at which something is done: regular, logarithmic and listed ones, the first and the last always."""

    every: int | None = 500
    """Every so many steps; None for none."""
    per_decade: int = 0
    """Logarithmically spaced steps per factor of ten."""
    at: tuple[int, ...] = ()
    """Steps named one by one."""

    def check(self) -> None:
        """A regular step is at least 1, the others are at least 0."""
        self.require_each("be at least 1", "every")
        self.require_each("be at least 0", "per_decade")
        require(all(step >= 0 for step in self.at), "each listed step must be at least 0", self.at)

    def steps(self, last: int) -> tuple[int, ...]:
        """The steps from 0 to `last`, each once, in order.

        >>> Cadence(every=None, per_decade=1, at=(42,)).steps(250)
        (0, 1, 10, 42, 100, 250)
        """
        found = {0, last, *self.at}
        if self.every is not None:
            found.update(range(0, last, self.every))
        if self.per_decade:
            found.update(round(10 ** (i / self.per_decade)) for i in range(int(math.log10(last) * self.per_decade) + 1))
        return tuple(sorted(step for step in found if step <= last))


@dataclass(frozen=True)
class RunSpec(Spec):
    """One training run. Two runs with equal specs, on equal devices and layouts, are equal bit for bit."""

    task: str = "add_mod97"
    """A task's name, as `grokscope tasks` lists them."""
    train_fraction: float = 0.3
    """Share of the rows that is trained on, of those from which the task lets the split draw."""
    shuffled_labels: bool = False
    """Whether the loss sees permuted labels: a control that can be memorised and never generalises."""
    seeds: Seeds = Seeds()
    """Split, initial weights and data order."""
    architecture: Architecture = Architecture()
    """The model."""
    initialization: Initialization = Initialization()
    """Its initial weights."""
    training: Training = Training()
    """Its optimiser and data."""
    trigger: Trigger | None = None
    """A change of λ at a signal."""
    control: ClosedLoop | None = None
    """A rule that raises λ while the training set stays learnt, and backs off."""
    release: Release | None = None
    """A rule that begins with strong decay and lets it go."""
    fork: Fork | None = None
    """The run and step this one continues."""
    norm_hold: NormHold | None = None
    """Norms that are held after each step, whatever λ is."""
    checkpoints: Cadence = Cadence(every=500)
    """When weights are kept."""
    measurements: Cadence = Cadence(every=100)
    """When the run is measured; measuring never changes it."""
    precision: Literal["float32", "tf32", "bf16", "float64"] = "float32"
    """Arithmetic: float32 is the reference, tf32 and bf16 are faster, float64 is for checking."""
    model: str = ""
    """Whose model it is, if not grokscope's: a monitored run, of which architecture and initialisation say nothing."""

    def check(self) -> None:
        """What concerns more than one part: the split, the trigger's decay, the steps named by fork and cadences."""
        require(0 < self.train_fraction < 1, "train_fraction must lie in (0, 1)", self.train_fraction)
        require(self.task != "" and self.task.isprintable(), "task must be a task's name", self.task)
        is_known = self.training.weight_decay is not None or self.model
        require(is_known, "weight_decay must be a finite number, unless the run is only monitored", None)
        require(self.model.isprintable(), "model must be a printable name", self.model)
        if self.trigger is not None:
            self.training.require_decay(self.trigger.weight_decay, "the trigger's weight_decay")
            schedule = self.training.weight_decay_schedule
            require(not schedule, "a run has a trigger or a weight_decay_schedule, not both", schedule)
        if self.control is not None:
            self._check_control(self.control)
        if self.release is not None:
            self._check_release(self.release)
        last = self.training.steps
        if self.fork is not None:
            require(self.fork.step < last, f"the fork's step must lie before the last step {last}", self.fork.step)
        if self.norm_hold is not None:
            begins = self.norm_hold.start
            require(begins < last, f"the norm hold's start must lie before the last step {last}", begins)
            norm = "free" if self.fork is None else self.fork.norm
            require(norm == "free", "a fork with norm_hold must leave its own norm free", norm)
        for cadence in (self.checkpoints, self.measurements):
            late = [step for step in cadence.at if step > last]
            require(not late, f"listed steps and fork points must not pass the last step {last}", late)

    def _check_control(self, control: ClosedLoop) -> None:
        self.training.require_decay(control.highest, "the control's highest")
        begins = self.training.known_weight_decay
        require(begins > 0, "weight_decay must be positive for a control, which multiplies it", begins)
        require(
            begins <= control.highest,
            f"the control's highest must be at least weight_decay {begins:g}",
            control.highest,
        )
        others = (self.trigger, self.training.weight_decay_schedule or None)
        rule = "a run has a control, a trigger or a weight_decay_schedule, not two of them"
        require(others == (None, None), rule, next((other for other in others if other is not None), None))

    def _check_release(self, release: Release) -> None:
        self.training.require_decay(release.weight_decay, "the release's weight_decay")
        require(self.training.weight_decay is not None, "weight_decay must be known for a release, which leaves it")
        others = (self.trigger, self.control, self.training.weight_decay_schedule or None)
        rule = "a run has a release, a control, a trigger or a weight_decay_schedule, not two of them"
        require(others == (None, None, None), rule, next((other for other in others if other is not None), None))

    @cached_property
    def content_hash(self) -> str:
        """As every spec's, but a user's own file counts by its digest alone: where it lies changes no run."""
        if not is_own_file(self.task):
            return super().content_hash
        kind = "table" if self.task.startswith(TABLE) else "rows"
        digest = (PINNED_TABLE if kind == "table" else OWN_ROWS).fullmatch(self.task)
        if digest is None or digest[2] is None:
            raise InputError(
                f"a run is named by the content of its {kind}; let grokscope.tasks.pinned_task_name add the digest to "
                f"task, got {shown(self.task)}"
            )
        return replace(self, task=f"{kind}#{digest[2]}").content_hash

    @property
    def identity(self) -> str:
        """The content hash; of a spec whose table is not pinned, which has none, a digest of its JSON."""
        try:
            return self.content_hash
        except InputError:
            return sha256(self.to_json().encode()).hexdigest()[:HASH_CHARACTERS]

    @property
    def evaluation_steps(self) -> set[int]:
        """When a run is evaluated: at its cadence, and whenever its trigger or closed loop needs it."""
        steps = set(self.measurements.steps(self.training.steps))
        rule = self.rule
        return steps if rule is None else steps.union(range(0, self.training.steps, rule.every))

    @property
    def rule(self) -> Trigger | ClosedLoop | Release | None:
        """What changes λ by what is logged, if anything does.

        >>> RunSpec(trigger=Trigger()).rule
        Trigger(signal='fsd', at_least=None, weight_decay=3.0, every=100, restore_after_grokking=False)
        """
        return self.trigger or self.control or self.release

    def with_seed(self, seed: int) -> "RunSpec":
        """The same run with all three seeds set to this one.

        >>> RunSpec().with_seed(42).seeds
        Seeds(split=42, initialization=42, data_order=42)
        """
        return replace(self, seeds=Seeds(seed, seed, seed))

    def with_values(self, values: Mapping[str, Any]) -> "RunSpec":
        """The same run with these values of its fields, or of those of its training, architecture and initialisation.

        >>> RunSpec().with_values({"task": "S5", "width": 64, "steps": 10}).architecture.width
        64
        """
        parts: tuple[Any, ...] = (self, self.training, self.architecture, self.initialization)
        own, *inner = ({f.name: values[f.name] for f in fields(part) if f.name in values} for part in parts)
        names = ("training", "architecture", "initialization")
        changed = {name: replace(part, **chosen) for name, part, chosen in zip(names, parts[1:], inner, strict=True)}
        return replace(self, **own | changed)
