"""Where activations are read in somebody else's model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from torch import Tensor, nn

from grokscope.errors import InputError, shown
from grokscope.shapes import Float

__all__ = ["Places", "Site", "at_position", "caught", "find_sites", "site_name"]

Site = str | Callable[[nn.Module, Any], Tensor]
"""A module's dotted name (its output; with `.input` at the end, its input), a TransformerLens hook name, or a function
of the model and its inputs."""
Places = dict[str, tuple[nn.Module, bool]]
"""The module behind each named site, and whether its input is read instead of its output."""
INPUT = ".input"
SUGGESTED = 3


def site_name(site: Site) -> str:
    """What a site is called in columns."""
    return site if isinstance(site, str) else getattr(site, "__name__", type(site).__name__)


def find_sites(model: nn.Module, sites: Sequence[Site]) -> Places:
    """The module behind every named site, or a refusal that suggests the nearest names."""
    known = _modules(model)
    found = {}
    for site in sites:
        if isinstance(site, str):
            name = site if site in known else site.removesuffix(INPUT)
            if name not in known:
                raise InputError(f"{type(model).__name__} has no site {shown(site)}{_suggestion(site, known)}")
            found[site] = (known[name], site not in known)
    return found


@contextmanager
def caught(places: Places) -> Iterator[dict[str, Any]]:
    """What each site held in the last forward pass; all hooks are gone afterwards."""
    held: dict[str, Any] = {}
    handles = []
    try:
        for site, (module, is_input) in places.items():
            handles.append(module.register_forward_hook(_catcher(site, is_input, held)))
        yield held
    finally:
        for handle in handles:
            handle.remove()


def at_position(site: str, value: Any, inputs: int, position: int | None) -> Float[Tensor, "inputs neurons"]:
    """One position of [inputs, positions, …], the rest beside each other as neurons; all positions if None."""
    if isinstance(value, tuple | list) and value:
        value = value[0]
    if not isinstance(value, Tensor):
        raise InputError(f"the site {shown(site)} must give a tensor, got {type(value).__name__}")
    if value.ndim < 2 or len(value) != inputs or not value.is_floating_point():
        kind = f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
        raise InputError(f"the site {shown(site)} must give numbers [inputs, …], got {kind} for {inputs} inputs")
    if value.ndim == 2 or position is None:
        return value.flatten(1)
    if not -value.shape[1] <= position < value.shape[1]:
        raise InputError(f"the site {shown(site)} has {value.shape[1]} positions, got position {position}")
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


def _catcher(site: str, is_input: bool, held: dict[str, Any]) -> Callable[..., None]:
    def catch_output(module: nn.Module, inputs: Any, output: Any) -> None:
        held[site] = output

    def catch_input(module: nn.Module, inputs: Any, output: Any) -> None:
        held[site] = inputs

    return catch_input if is_input else catch_output
