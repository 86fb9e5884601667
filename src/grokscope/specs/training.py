"""The optimiser and its data: what happens at every step."""

from dataclasses import dataclass
from typing import Literal

from grokscope.errors import InputError
from grokscope.specs.spec import Spec, require

__all__ = ["Training"]


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
