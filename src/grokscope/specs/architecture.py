"""The model: a transformer or a plain MLP, and how its weights begin."""

from dataclasses import dataclass, fields
from typing import Literal

from grokscope.specs.spec import Spec, require

__all__ = ["Architecture", "Initialization"]

Branch = Literal["on", "dropped", "norm"]
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
