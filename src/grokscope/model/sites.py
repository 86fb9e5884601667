"""Names inside a model: sites, components that can be ablated, heads and what reads them."""

from dataclasses import dataclass
from typing import Literal

from grokscope.specs import Architecture

__all__ = [
    "READ_POSITION_ONLY",
    "SITES_WITH_HEADS",
    "Component",
    "Head",
    "Receiver",
    "components_of",
    "hidden_sites",
    "receivers_of",
    "site_names",
]

READ_POSITION_ONLY = ("logits", "ln_final.hook_normalized")  # sites that exist at the read position alone
SITES_WITH_HEADS = ("hook_q", "hook_k", "hook_v", "hook_z")  # their last axes are heads and head width


def site_names(architecture: Architecture) -> tuple[str, ...]:
    """Every site of an architecture, in the order of the forward pass.

    >>> [name for name in site_names(Architecture(layers=1)) if "mlp" in name]
    ['blocks.0.mlp.hook_pre', 'blocks.0.mlp.hook_post', 'blocks.0.hook_mlp_out']
    >>> site_names(Architecture(kind="mlp", layers=1))
    ('layers.0.hook_pre', 'layers.0.hook_post', 'logits')
    """
    if architecture.kind == "mlp":
        return _site_names_of_mlp(architecture)
    names = ["hook_embed", "hook_pos_embed"]
    for i in range(architecture.layers):
        block = f"blocks.{i}."
        names.append(f"{block}hook_resid_pre")
        if architecture.attention != "dropped":
            names += [f"{block}ln1.hook_normalized"] * architecture.layer_norm
            if architecture.attention == "on":
                names += [f"{block}attn.hook_{part}" for part in ("q", "k", "v", "pattern", "z")]
            names.append(f"{block}hook_attn_out")
        names.append(f"{block}hook_resid_mid")
        if architecture.mlp != "dropped":
            names += [f"{block}ln2.hook_normalized"] * architecture.layer_norm
            if architecture.mlp == "on":
                names += [f"{block}mlp.hook_pre", f"{block}mlp.hook_post"]
            names.append(f"{block}hook_mlp_out")
        names.append(f"{block}hook_resid_post")
    return (*names, *(["ln_final.hook_normalized"] * architecture.has_final_norm), "logits")


def _site_names_of_mlp(architecture: Architecture) -> tuple[str, ...]:
    names = ["hook_embed"] * architecture.embedded
    for i in range(architecture.layers):
        normalized = [f"layers.{i}.ln.hook_normalized"] * architecture.hidden_norm
        names += [f"layers.{i}.hook_pre", *normalized, f"layers.{i}.hook_post"]
    return (*names, "logits")


def hidden_sites(architecture: Architecture) -> tuple[str, str]:
    """The first and the last block's MLP neurons, or their attention outputs where there are none (Table 8).

    Of a plain MLP the first and the last layer's neurons; a linear model has none, and its outputs are read.

    >>> hidden_sites(Architecture())
    ('blocks.0.mlp.hook_post', 'blocks.1.mlp.hook_post')
    >>> hidden_sites(Architecture(kind="mlp", layers=3))
    ('layers.0.hook_post', 'layers.2.hook_post')
    """
    if architecture.kind == "mlp":
        last = architecture.layers - 1
        return ("layers.0.hook_post", f"layers.{last}.hook_post") if architecture.layers else ("logits", "logits")
    end = "mlp.hook_post" if architecture.mlp == "on" else "hook_attn_out"
    return f"blocks.0.{end}", f"blocks.{architecture.layers - 1}.{end}"


@dataclass(frozen=True)
class Component:
    """What can be ablated: a site, or one head of it."""

    site: str
    head: int | None = None
    """One attention head of a site that has heads; None is all of the site."""

    @property
    def name(self) -> str:
        """The site, with the head in brackets."""
        return self.site if self.head is None else f"{self.site}[{self.head}]"

    @property
    def short_name(self) -> str:
        """Of a branch, a head or a layer: `attn0`, `mlp1`, `head0.3`, `layer0`."""
        if "." not in self.site:  # a linear model's outputs
            return self.site
        kind, block = self.site.split(".")[:2]
        if kind == "layers":
            return f"layer{block}"
        if self.head is not None:
            return f"head{block}.{self.head}"
        return f"{'attn' if self.site.endswith('attn_out') else 'mlp'}{block}"


def components_of(architecture: Architecture) -> tuple[Component, ...]:
    """Every block's attention and MLP, then every head; of a plain MLP every hidden layer.

    A branch is ablated where it joins the stream, with its output bias, as a hook on the module would do it. A head is
    ablated before the output map, whose bias stays: it belongs to no head.

    >>> [component.name for component in components_of(Architecture(layers=1, heads=2))]
    ['blocks.0.hook_attn_out', 'blocks.0.hook_mlp_out', 'blocks.0.attn.hook_z[0]', 'blocks.0.attn.hook_z[1]']
    """
    sites = site_names(architecture)
    if architecture.kind == "mlp":
        return tuple(Component(site) for site in sites if site.endswith("hook_post"))
    branches = [Component(site) for site in sites if site.endswith(("hook_attn_out", "hook_mlp_out"))]
    with_heads = [site for site in sites if site.endswith("hook_z")]
    return (*branches, *(Component(site, head) for site in with_heads for head in range(architecture.heads)))


@dataclass(frozen=True)
class Head:
    """An attention head that writes into the residual stream."""

    block: int
    index: int
    """Its number within the block."""

    @property
    def site(self) -> str:
        """Where its output is found, before the output map."""
        return f"blocks.{self.block}.attn.hook_z"


@dataclass(frozen=True)
class Receiver:
    """What reads the residual stream: a head's queries, keys or values, an MLP, or the logits."""

    part: Literal["q", "k", "v", "mlp", "logits"]
    block: int = 0
    """The logits have none."""
    head: int = 0
    """For q, k and v."""

    def stage(self, architecture: Architecture) -> int:
        """Its place in the order of the forward pass: a block's attention, its MLP, then the logits."""
        if self.part == "logits":
            return 2 * architecture.layers
        return 2 * self.block + (self.part == "mlp")

    def stream(self, architecture: Architecture) -> str:
        """The site of the residual stream that it reads."""
        if self.part == "logits":
            return f"blocks.{architecture.layers - 1}.hook_resid_post"
        return f"blocks.{self.block}.hook_resid_{'mid' if self.part == 'mlp' else 'pre'}"

    def site(self, architecture: Architecture) -> str:
        """What it makes of the stream; an MLP replaced by a LayerNorm has no neurons, only an output."""
        if self.part == "logits":
            return "logits"
        block = f"blocks.{self.block}."
        if self.part == "mlp":
            return f"{block}mlp.hook_pre" if architecture.mlp == "on" else f"{block}hook_mlp_out"
        return f"{block}attn.hook_{self.part}"


def receivers_of(architecture: Architecture, sender: Head) -> tuple[Receiver, ...]:
    """All that can read a head's output directly: its block's MLP, every later head and MLP, and the logits.

    >>> receivers_of(Architecture(layers=1), Head(0, 0))
    (Receiver(part='mlp', block=0, head=0), Receiver(part='logits', block=0, head=0))
    """
    found = []
    for block in range(sender.block, architecture.layers):
        if block > sender.block:
            found += [Receiver(part, block, head) for head in range(architecture.heads) for part in ("q", "k", "v")]
        if architecture.mlp != "dropped":
            found.append(Receiver("mlp", block))
    return (*found, Receiver("logits"))
