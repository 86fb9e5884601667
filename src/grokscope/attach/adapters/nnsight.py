"""A site that nnsight reads."""

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from grokscope.attach.adapters.framework import framework

__all__ = ["nnsight_site"]


def nnsight_site(read: Callable[[Any], Any], name: str = "nnsight") -> Callable[[nn.Module, Any], Tensor]:
    """A site for `Monitor(sites=…)` that is an nnsight expression: `nnsight_site(lambda m: m.mlp.act.output)`.

    Each chunk of pairs is traced once for it, beside the pass that gives the logits. A monitor that is given an
    `NNsight` reads the module inside it.
    """
    wrapped: WeakKeyDictionary[nn.Module, Any] = WeakKeyDictionary()

    def site(model: nn.Module, inputs: Any) -> Tensor:
        if model not in wrapped:
            wrapped[model] = framework("nnsight").NNsight(model)
        traced = wrapped[model]
        named = dict(inputs) if isinstance(inputs, Mapping) else {}
        given = () if named else inputs if isinstance(inputs, tuple) else (inputs,)
        with traced.trace(*given, **named):
            value = read(traced).save()
        return value

    site.__name__ = name
    return site
