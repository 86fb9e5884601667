"""A site that nnsight reads."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from grokscope.attach.adapters.framework import framework

__all__ = ["nnsight_site"]


def nnsight_site(read: Callable[[Any], Any], name: str = "nnsight") -> Callable[[nn.Module, Any], Tensor]:
    """A site for `Monitor(sites=…)` that is an nnsight expression: `nnsight_site(lambda m: m.mlp.act.output)`.

    Each chunk of pairs is traced once more for it, after the pass that gives the logits. A monitor that is given an
    `NNsight` reads the module inside it.

    Example::

        Monitor("add_mod23", sites=[nnsight_site(lambda m: m.mlp.act.output)])
    """

    def site(model: nn.Module, inputs: Any) -> Tensor:
        named = dict(inputs) if isinstance(inputs, Mapping) else {}
        given = () if named else inputs if isinstance(inputs, tuple) else (inputs,)
        with _same_attributes(model):
            traced = framework("nnsight").NNsight(model)
            with traced.trace(*given, **named):
                value = read(traced).save()
        return value

    site.__name__ = name
    return site


@contextmanager
def _same_attributes(model: nn.Module) -> Iterator[None]:
    """Without what nnsight leaves in every module that it has wrapped, such as another `forward`."""
    before = [(module, dict(vars(module))) for module in model.modules()]
    try:
        yield
    finally:
        for module, attributes in before:
            for added in vars(module).keys() - attributes:
                del vars(module)[added]
            vars(module).update(attributes)
