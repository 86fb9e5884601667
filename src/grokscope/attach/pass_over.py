"""One pass over all pairs: what the model answers, and what its sites hold."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grokscope.activations import RunningMeans
from grokscope.attach.encoders import Encode, called_with
from grokscope.attach.given import asked, one_line
from grokscope.attach.measures import SiteReading
from grokscope.attach.sites import Place, Site, at_position, caught, find_sites, site_name
from grokscope.attach.undisturbed import device_of, home_of
from grokscope.errors import InputError, shown
from grokscope.shapes import Bool, Float, Int
from grokscope.tasks import Basis, Task

__all__ = ["Pass", "Seen", "logits_of", "train_pairs"]

PAIRS_AT_ONCE = {"cpu": 2048, "cuda": 2**15}
PROBED = 2


@dataclass(frozen=True, eq=False)
class Seen:
    """One look at a model."""

    scores: dict[str, float]
    """Accuracy and loss on all pairs, and on training and validation pairs where they are known."""
    readings: tuple[SiteReading, ...]
    """What was read at each site."""

    def reading(self, site: int) -> SiteReading:
        """The reading of one site, by its number."""
        return self.readings[site]


@dataclass(frozen=True, eq=False)
class Pass:
    """How a model is run over all pairs."""

    task: Task
    """What is learnt."""
    basis: Basis | None
    """The basis in which it is read."""
    condition: Int[Tensor, " inputs"]
    """What each pair is conditioned on."""
    sites: tuple[Site, ...]
    """Where activations are read."""
    encode: Encode
    """From (a, b) to the model's inputs."""
    casts: bool
    """Whether inputs that are not whole numbers are given in the model's own precision."""
    readout: Callable[[Any], Tensor] | None
    """From its output to logits; found by itself if None."""
    position: int | None
    """Which position is read."""
    is_train: Bool[Tensor, " inputs"] | None
    """The training pairs, if they are known."""
    keys: Bool[Tensor, "1 modes"] | None
    """Key modes that were given."""
    holds_all: bool
    """Whether activations and logits of all pairs are kept together."""
    chunk: int | None
    """Pairs in one forward pass."""

    def over(self, model: nn.Module) -> Seen:
        """Run all pairs, chunk by chunk. The caller has made sure that nothing is disturbed."""
        device = device_of(model)
        totals = [RunningMeans(self.task.symbols, self.condition.to(home_of(device))) for _ in self.sites]
        kept: list[list[Tensor]] = [[] for _ in self.sites]
        all_logits, graded = [], []
        for rows, logits, values in self._parts(model, device):
            graded.append(self._graded(logits, rows))
            for total, value, parts in zip(totals, values, kept, strict=True):
                total.add(value[None], rows)
                if self.holds_all:
                    parts.append(value)
            if self.holds_all:
                all_logits.append(logits[:, : self.task.classes])
        whole = torch.cat(all_logits)[None] if self.holds_all else None
        readings = tuple(
            SiteReading(
                self.task,
                self.basis,
                total.means(),
                total.condition,
                self.is_train,
                self.keys,
                torch.cat(parts)[None] if self.holds_all else None,
                whole,
            )
            for total, parts in zip(totals, kept, strict=True)
        )
        return Seen(self._averaged(torch.cat(graded, dim=1)), readings)

    def probe(self, model: nn.Module) -> None:
        """Run the first pairs only, to refuse what cannot be read."""
        rows = slice(0, PROBED)
        self._run(model, device_of(model), rows, find_sites(model, self.sites))

    def _parts(self, model: nn.Module, device: torch.device) -> Iterator[tuple[slice, Tensor, list[Tensor]]]:
        size = self.chunk or PAIRS_AT_ONCE.get(device.type, PAIRS_AT_ONCE["cpu"])
        places, inputs = find_sites(model, self.sites), len(self.task.inputs)
        for start in range(0, inputs, size):
            rows = slice(start, min(start + size, inputs))
            yield rows, *self._run(model, device, rows, places)

    def _run(
        self, model: nn.Module, device: torch.device, rows: slice, places: Mapping[str, Place]
    ) -> tuple[Float[Tensor, "inputs classes"], list[Tensor]]:
        """Logits and every site's neurons for some pairs."""
        a, b = torch.tensor(self.task.inputs[rows].T, device=device)
        given = asked("encode", lambda: self.encode(a, b))
        encoded = _moved(given, device, _precision(model) if self.casts else None)
        count = len(a)
        with caught(places, count, self.position) as held:
            try:
                output = called_with(model, encoded)
            except InputError:  # a site that cannot be read
                raise
            except Exception as error:  # whatever a model raises when it cannot use its inputs
                raise InputError(
                    f"{type(model).__name__} refuses what encode gives, {_described(encoded)}: {one_line(error)}"
                ) from error
        found = asked("readout", lambda: logits_of(output, self.readout))
        logits = self._checked(found, encoded, count, type(model).__name__)
        values = []
        for site in self.sites:
            if isinstance(site, str):
                value = held[site].only(site)
            else:
                name = site_name(site)
                read = asked(f"the site {shown(name)}", partial(site, model, encoded))
                value = at_position(name, read, count, self.position)
            values.append(value.to(device))  # a model may lie on several; read where its inputs are
        return logits.to(device), values

    def _checked(self, logits: Any, encoded: Any, count: int, name: str) -> Float[Tensor, "inputs classes"]:
        if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != count:
            got = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise InputError(f"{name} must give logits [inputs, classes] for {count} inputs, got {got}; see `readout`")
        classes, least = logits.shape[1], self.task.classes
        # Tokens beyond the symbols (separator, operator) may have logits too, as in a language model.
        most = max(least, _largest_token(encoded) + 1)
        if classes < least or (self.readout is None and classes > most):
            tokens = "" if most == least else f" (or {most} with the other tokens)"
            raise InputError(
                f"{name} has {classes} classes, and {self.task.name} has {least} answers{tokens}; give the task it "
                "learns, or cut its logits with `readout`"
            )
        return logits

    def _graded(self, logits: Tensor, rows: slice) -> Float[Tensor, "2 inputs"]:
        """Whether each pair is answered right, and its cross-entropy in float64; NaN where logits are not numbers."""
        answers = torch.tensor(self.task.answers[rows], device=logits.device)
        wide = logits.to(home_of(logits.device)).double()
        answers = answers.to(wide.device)
        loss = wide.logsumexp(dim=-1) - wide.gather(-1, answers[:, None])[:, 0]
        right = (wide.argmax(dim=-1) == answers).double().where(~loss.isnan(), torch.nan)
        return torch.stack([right, loss])

    def _averaged(self, graded: Float[Tensor, "2 inputs"]) -> dict[str, float]:
        accuracy, loss = graded.mean(dim=1).tolist()
        if self.is_train is None:
            return {"accuracy": accuracy, "loss": loss}
        chosen = self.is_train.to(graded.device)
        parts = {"train": graded[:, chosen], "validation": graded[:, ~chosen]}
        means = {name: part.mean(dim=1).tolist() for name, part in parts.items()}
        scores = {f"{name}_accuracy": mean[0] for name, mean in means.items()}
        scores |= {f"{name}_loss": mean[1] for name, mean in means.items()}
        return scores | {"accuracy": accuracy, "loss": loss}


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


def train_pairs(task: Task, train: Any) -> Bool[Tensor, " inputs"]:
    """A mask over the task's inputs from a mask, a square mask over (a, b), or pairs."""
    n, count = task.symbols, len(task.inputs)
    try:
        given = train.detach().cpu().numpy() if isinstance(train, Tensor) else np.asarray(train)
    except ValueError:
        raise InputError("train must be a mask or pairs [k, 2]: its rows differ in length") from None
    if given.dtype == bool and given.shape == (count,):
        mask = given.copy()
    elif given.dtype == bool and given.shape == (n, n):
        mask = given[task.inputs[:, 0], task.inputs[:, 1]]
    elif np.issubdtype(given.dtype, np.integer) and given.ndim == 2 and given.shape[1] == 2:
        if len(given) and not ((given >= 0) & (given < n)).all():
            raise InputError(f"training pairs must lie in 0 … {n - 1}, got {shown(given.max())}")
        square = np.zeros((n, n), dtype=bool)
        square[given[:, 0], given[:, 1]] = True
        mask = square[task.inputs[:, 0], task.inputs[:, 1]]
    else:
        raise InputError(
            f"train must be a mask over {count} pairs, a mask [{n}, {n}], or pairs [k, 2], "
            f"got {given.dtype} {list(given.shape)}"
        )
    if mask.all() or not mask.any():
        raise InputError(f"train must name some pairs and leave some for validation, got {mask.sum()} of {count}")
    return torch.from_numpy(mask)


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
