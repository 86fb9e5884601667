"""Where activations are read in somebody else's model."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.jit import ScriptModule

from grokscope.errors import InputError, require, shown
from grokscope.shapes import Float

__all__ = ["Capture", "Place", "Site", "at_position", "capture", "find_sites", "likely_sites", "site_name"]

Site = str | Callable[[nn.Module, Any], Tensor]
"""A module's dotted name (its output; with `.input` at the end, its input; with `#2` after that, its second call in a
forward pass), a TransformerLens hook name, or a function of the model and its inputs."""
INPUT, NUMBERED = ".input", re.compile(r"(.+)#([1-9][0-9]{0,5})")
SUGGESTED = 3


@dataclass(frozen=True)
class Place:
    """Where a named site is."""

    module: nn.Module
    """The module behind it."""
    is_input: bool
    """Whether its input is read instead of its output."""
    call: int | None
    """Which of its calls in one forward pass, from 1; None where it has a single one."""


@dataclass
class Capture:
    """The activations of one site in a forward pass."""

    call: int | None
    """The call that is wanted; None for the only one."""
    calls: int = 0
    """How often its module was called."""
    neurons: Float[Tensor, "inputs neurons"] | None = None
    """A copy of its activations in that call."""

    def only(self, site: str) -> Float[Tensor, "inputs neurons"]:
        """The activations, unless one of several calls has to be chosen."""
        require(self.calls, f"the site {shown(site)} was not reached in the forward pass")
        if self.neurons is None:
            raise InputError(f"the site {shown(site)} is reached {self.calls} times in a forward pass, not more")
        require(
            self.call is not None or self.calls <= 1,
            f"the site {shown(site)} is reached {self.calls} times in a forward pass; choose one, from "
            f"{shown(f'{site}#1')} to {shown(f'{site}#{self.calls}')}",
        )
        return self.neurons


def site_name(site: Site) -> str:
    """What a site is called in columns."""
    return site if isinstance(site, str) else getattr(site, "__name__", type(site).__name__)


def find_sites(model: nn.Module, sites: Sequence[Site]) -> dict[str, Place]:
    """The place of every named site; an unknown one is rejected with the nearest names."""
    known = _modules(model)
    found = {}
    for site in sites:
        if isinstance(site, str):
            numbered = None if site in known else NUMBERED.fullmatch(site)
            part = numbered[1] if numbered else site
            name = part if part in known else part.removesuffix(INPUT)
            if name not in known:
                raise InputError(f"{type(model).__name__} has no site {shown(site)}{_suggestion(site, known)}")
            require(
                not isinstance(known[name], ScriptModule),
                f"the site {shown(site)} is compiled by torch.jit, which cannot be read; give a function",
            )
            found[site] = Place(known[name], part not in known, int(numbered[2]) if numbered else None)
    return found


def likely_sites(model: nn.Module) -> list[str]:
    """Some modules whose output could be read: activation functions, or else whatever has no parts."""
    parts = {name: part for name, part in _modules(model).items() if not any(part.children())}
    activations = [name for name, part in parts.items() if "activation" in type(part).__module__]
    return (activations or list(parts))[:SUGGESTED]


@contextmanager
def capture(places: Mapping[str, Place], inputs: int, position: int | None) -> Iterator[dict[str, Capture]]:
    """Record each site at a position in a forward pass over some inputs; all hooks are gone afterwards."""
    captured = {site: Capture(place.call) for site, place in places.items()}
    with ExitStack() as handles:
        for site, place in places.items():
            read = partial(at_position, site, inputs=inputs, position=position)
            handles.callback(_add_hook(place, captured[site], read).remove)
        yield captured


def at_position(site: str, value: Any, inputs: int, position: int | None) -> Float[Tensor, "inputs neurons"]:
    """One position of [inputs, positions, …], the rest taken as neurons; all positions if None."""
    value = _first(value)
    is_tensor = isinstance(value, Tensor)
    require(is_tensor, f"the site {shown(site)} must give a tensor, got {type(value).__name__}")
    if value.ndim < 2 or len(value) != inputs or not value.is_floating_point():
        kind = f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
        turned = value.ndim > 2 and len(value) != inputs and value.shape[1] == inputs
        hint = "; where positions come first, give a function that turns them" if turned else ""
        raise InputError(f"the site {shown(site)} must give numbers [inputs, …], got {kind} for {inputs} inputs{hint}")
    if value.ndim == 2 or position is None:
        return value.flatten(1)
    require(
        -value.shape[1] <= position < value.shape[1],
        f"the site {shown(site)} has {value.shape[1]} positions, got position {position}",
    )
    return value[:, position].flatten(1)


def _modules(model: nn.Module) -> dict[str, nn.Module]:
    """Every module by its dotted name, and TransformerLens's hook points by theirs."""
    found = {name: module for name, module in model.named_modules(remove_duplicate=False) if name}
    hooks = getattr(model, "hook_dict", {})
    return found | {name: hook for name, hook in hooks.items() if isinstance(hook, nn.Module)}


def _suggestion(site: str, known: Mapping[str, nn.Module]) -> str:
    near = get_close_matches(site[:200], known, n=SUGGESTED, cutoff=0.5)
    if not near:  # a name from another model: what ends alike is nearest
        near = [name for name in known if name.rpartition(".")[2] == site.rpartition(".")[2]][:SUGGESTED]
    if not near:
        return f"; it has {', '.join(map(repr, list(known)[:SUGGESTED]))} and {len(known)} in all"
    return f"; the nearest are {', '.join(map(repr, near))}"


def _add_hook(place: Place, capture: Capture, read: Callable[[Any], Tensor]) -> Any:
    def keep(value: Any) -> None:
        capture.calls += 1
        if capture.calls == (place.call or 1):
            # A copy: what comes next may change it in place, as ReLU(inplace=True) does.
            capture.neurons = read(value).detach().clone()

    if not place.is_input:
        return place.module.register_forward_hook(lambda module, inputs, output: keep(output))
    return place.module.register_forward_pre_hook(
        lambda module, inputs, named: keep(inputs or tuple(named.values())), with_kwargs=True
    )


def _first(value: Any) -> Any:
    """The first of several outputs or inputs."""
    several = tuple(value.values()) if isinstance(value, Mapping) else value
    return several[0] if isinstance(several, tuple | list) and several else value
