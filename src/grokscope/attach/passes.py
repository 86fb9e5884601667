"""One pass of a model over all pairs: its answers, and the activations at its sites."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from grokscope.activations import Conditioning, RunningMeans, condition_of
from grokscope.attach.arguments import call_user, one_line
from grokscope.attach.encoders import Encode, call_model
from grokscope.attach.foreign_model import ForeignModel
from grokscope.attach.preservation import device_of, home_of
from grokscope.attach.sites import Place, Site, at_position, capture, find_sites, site_name
from grokscope.errors import InputError, require, shown
from grokscope.model import row_scores
from grokscope.shapes import Bool, Float
from grokscope.tasks import Task

__all__ = ["Pass", "logits_of"]

PAIRS_AT_ONCE = {"cpu": 2048, "cuda": 2**15}
PROBED = 2


@dataclass(frozen=True, eq=False)
class Pass:
    """How a model is run over all pairs."""

    task: Task
    by: Conditioning
    """What activations are conditioned on."""
    sites: tuple[Site, ...]
    encode: Encode
    """From (a, b) to the model's inputs."""
    casts: bool
    """Whether inputs that are not whole numbers are given in the model's own precision."""
    readout: Callable[[Any], Tensor] | None
    """From its output to logits; found by itself if None."""
    position: int | None
    """The position that is read; all of them as neurons if None."""
    is_train: Bool[Tensor, " inputs"] | None
    """The training pairs, if they are known."""
    keeps_all: bool
    """Whether activations and logits of all pairs are kept together."""
    chunk: int | None
    """Pairs in one forward pass."""

    def evaluate(self, model: nn.Module) -> ForeignModel:
        """Run all pairs, chunk by chunk. The caller has made sure that nothing is disturbed."""
        device, names = device_of(model), [site_name(site) for site in self.sites]
        home = home_of(device)
        read_by = condition_of(self.task, self.by)
        condition, answers = (torch.tensor(values, device=home) for values in (read_by.values, self.task.answers))
        totals = {name: RunningMeans(read_by.size, condition) for name in names}
        kept: dict[str, list[Tensor]] = {name: [] for name in names}
        all_logits, scored = [], []
        for rows, logits, values in self._parts(model, device):
            scored.append(torch.stack(row_scores(logits.to(home).double(), answers[rows])))
            for name, value in zip(names, values, strict=True):
                totals[name].add(value[None], rows)
                if self.keeps_all:
                    kept[name].append(value.to(home))
            if self.keeps_all:
                all_logits.append(logits[:, : self.task.classes].to(home))
        is_train = torch.ones_like(answers, dtype=torch.bool) if self.is_train is None else self.is_train.to(home)
        return ForeignModel(
            task=self.task,
            names=(type(model).__name__,),
            is_train=is_train[None],
            labels=answers[None],
            knows_split=self.is_train is not None,
            scored=torch.cat(scored, dim=1)[:, None],
            site_means={name: total.means() for name, total in totals.items()},
            activations={name: torch.cat(parts)[None] for name, parts in kept.items() if parts},
            all_logits=torch.cat(all_logits)[None] if self.keeps_all else None,
        )

    def probe(self, model: nn.Module) -> None:
        """Run the first pairs only, to reject what cannot be read."""
        self._run(model, device_of(model), slice(0, PROBED), find_sites(model, self.sites))

    def _parts(self, model: nn.Module, device: torch.device) -> Iterator[tuple[slice, Tensor, list[Tensor]]]:
        size = self.chunk or PAIRS_AT_ONCE.get(device.type, PAIRS_AT_ONCE["cpu"])
        places, inputs = find_sites(model, self.sites), self.task.rows
        for start in range(0, inputs, size):
            rows = slice(start, min(start + size, inputs))
            yield rows, *self._run(model, device, rows, places)

    def _run(
        self, model: nn.Module, device: torch.device, rows: slice, places: Mapping[str, Place]
    ) -> tuple[Float[Tensor, "inputs classes"], list[Tensor]]:
        """Logits and every site's neurons for some pairs."""
        a, b = torch.tensor(self.task.inputs[rows].T, device=device)
        given = call_user("encode", lambda: self.encode(a, b))
        encoded = _moved(given, device, _precision(model) if self.casts else None)
        count = len(a)
        with capture(places, count, self.position) as captured:
            try:
                output = call_model(model, encoded)
            except InputError:  # a site that cannot be read
                raise
            except Exception as error:  # whatever a model raises when it cannot use its inputs
                raise InputError(
                    f"{type(model).__name__} rejects what encode gives, {_described(encoded)}: {one_line(error)}"
                ) from error
        found = call_user("readout", lambda: logits_of(output, self.readout))
        logits = self._checked(found, encoded, count, type(model).__name__)
        values = []
        for site in self.sites:
            if isinstance(site, str):
                value = captured[site].only(site)
            else:
                name = site_name(site)
                read = call_user(f"the site {shown(name)}", partial(site, model, encoded))
                value = at_position(name, read, count, self.position)
            values.append(value.to(device))  # a model may lie on several; read where its inputs are
        return logits.to(device), values

    def _checked(self, logits: Any, encoded: Any, count: int, name: str) -> Float[Tensor, "inputs classes"]:
        got = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        is_table = isinstance(logits, Tensor) and logits.ndim == 2 and len(logits) == count
        require(is_table, f"{name} must give logits [inputs, classes] for {count} inputs, got {got}; see `readout`")
        classes, least = logits.shape[1], self.task.classes
        # Tokens beyond the symbols (separator, operator) may have logits too, as in a language model.
        most = max(least, _largest_token(encoded) + 1)
        tokens = "" if most == least else f" (or {most} with the other tokens)"
        require(
            classes >= least and (self.readout is not None or classes <= most),
            f"{name} has {classes} classes, and {self.task.name} has {least} answers{tokens}; give the task it "
            "learns, or cut its logits with `readout`",
        )
        return logits


def logits_of(output: Any, readout: Callable[[Any], Tensor] | None = None) -> Any:
    """Logits of the last position, from a tensor, `.logits`, `["logits"]` or the first of several outputs."""
    if readout is not None:
        return readout(output)
    if hasattr(output, "logits"):
        output = output.logits
    elif isinstance(output, Mapping) and "logits" in output:
        output = output["logits"]
    elif isinstance(output, tuple | list) and output:
        output = output[0]
    return output[:, -1] if isinstance(output, Tensor) and output.ndim == 3 else output


def _moved(inputs: Any, device: torch.device, precision: torch.dtype | None) -> Any:
    if isinstance(inputs, Tensor):
        return inputs.to(device, precision if inputs.is_floating_point() else None)
    if isinstance(inputs, Mapping):
        return {name: _moved(value, device, precision) for name, value in inputs.items()}
    return tuple(_moved(value, device, precision) for value in inputs) if isinstance(inputs, tuple) else inputs


def _precision(model: nn.Module) -> torch.dtype | None:
    return next((parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()), None)


def _tensors(inputs: Any) -> list[Tensor]:
    if isinstance(inputs, Mapping):
        inputs = tuple(inputs.values())
    return [value for value in (inputs if isinstance(inputs, tuple) else (inputs,)) if isinstance(value, Tensor)]


def _largest_token(inputs: Any) -> int:
    whole = [value for value in _tensors(inputs) if not value.is_floating_point() and value.numel()]
    return max((int(value.max()) for value in whole), default=-1)


def _described(inputs: Any) -> str:
    return " and ".join(map(_kind, _tensors(inputs))) or type(inputs).__name__


def _kind(value: Tensor) -> str:
    """Type and shape; of tokens the largest too, which an embedding may not have."""
    largest = "" if value.is_floating_point() or not value.numel() else f" with tokens up to {int(value.max())}"
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}{largest}"
