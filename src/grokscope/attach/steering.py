"""Somebody else's model, trained so that it groks soon: strong decay, let go in time, in any PyTorch loop."""

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf, isfinite
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from grokscope.attach.arguments import plain_step
from grokscope.attach.decoupled_decay import step_decoupled
from grokscope.attach.parameter_groups import group_parameters
from grokscope.attach.steered_optimizers import begin_rate, recipe_optimizers, reject_foreign
from grokscope.errors import InputError, require, shown
from grokscope.specs import Release
from grokscope.steering import FAST, Recipe, ReleasePhase, released

__all__ = ["Steering"]

Row = dict[str, Any]
UNIT = 1e-3  # each step multiplies a decayed parameter by 1 − 10⁻³λ
MOST = 1 / UNIT  # λ at which a single step leaves nothing
LEARNT_BY = 2000  # steps after which a training set that is not learnt is worth a warning
WITHOUT_VALIDATION: tuple[Any, ...] = ("norm_slows", "accuracy_breaks", "loss_rises")
BREAKS = (ReleasePhase.ACCURACY_BREAKS, ReleasePhase.LOSS_RISES)
PLACES = ("grokscope.", "torch.")  # whose lines no warning names: it is the caller's that can be changed


class Steering(Optimizer):
    """An optimiser whose weight decay is strong until a model generalises, and is then let go.

    In place of your optimiser, `steering = Steering(model)`: Muon moves the matrices, AdamW everything else. Around
    yours, `Steering(model, optimizer)`: its updates stay as they are, and only its weight decay is steered. λ is
    written so that each step multiplies a decayed parameter by 1 − 10⁻³λ, whatever the learning rate: the weight decay
    of a group is 10⁻³λ / lr, with the lr that the group has when steering begins (of a schedule that was made before,
    the largest that it has noted); a schedule of lr scales decay with it. So does every optimiser: where its own decay
    would go through its moments (Adam, SGD with momentum), the parameters are multiplied by 1 − lr · weight_decay here,
    before its step, as AdamW does.

    With Muon λ is strong from the first step; without a matrix for Muon, or around an optimiser of yours, it is gentle,
    1, until the training set is learnt. Every `every` steps it decides by what it has seen: the mean train loss, the
    norm, and train and validation accuracy where they are given. It lets go at generalisation; without any validation
    when the norm, which fell, hardly falls any more; and in any case, with a warning, when what is memorised breaks.
    Where the training set is not learnt, or what is held out, and 1,000 steps brought no progress, it halves λ: decay
    only hinders there.

    A warning says where it can hardly help: a model without a matrix for Muon, an optimiser of yours that decays more
    strongly by itself, and a training set that λ keeps from being learnt.

    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> steering = Steering(model)
    >>> loss = model(torch.ones(3, 4)).square().mean()
    >>> loss.backward()
    >>> steering.observe(loss, validation_accuracy=0.2)
    >>> steering.step()
    >>> steering.weight_decay, [*steering.parameter_names["matrix"]]
    (5.0, ['2.weight'])
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any = None,
        *,
        recipe: Any = FAST,
        weight_decay: Any = None,
        release: Any = None,
        validation: Any = None,
        own_muon: bool = False,
    ) -> None:
        """What is trained, by what, and when decay is let go.

        Args:
            model: Whose parameters are trained and whose norm is watched.
            optimizer: Yours, whose weight decay is steered; Muon and AdamW if not given.
            recipe: Learning rates, the strong λ, and λ afterwards.
            weight_decay: The strong λ, if not the recipe's.
            release: When λ is let go, and to what, if not the recipe's.
            validation: A function that gives validation accuracy; it is called at every decision.
            own_muon: Use our Muon, in the weights' precision, where PyTorch has one, in bfloat16.
        """
        require(isinstance(model, nn.Module), f"model must be a torch.nn.Module, got {type(model).__name__}")
        require(validation is None or callable(validation), "validation must be a function without arguments")
        require(isinstance(recipe, Recipe), "recipe must be a Recipe, such as grokscope.steering.FAST", recipe)
        require(release is None or isinstance(release, Release), "release must be a grokscope.specs.Release", release)
        require(not isinstance(optimizer, Steering), "the optimiser is steered already")
        reject_foreign(optimizer, model)
        self.model, self.recipe, self.validation = model, recipe, validation
        self.strong = recipe.weight_decay if weight_decay is None else _number(weight_decay, "weight_decay")
        require(0 <= self.strong < MOST, "weight_decay must be at least 0 and below 1,000", weight_decay)
        names = group_parameters(model)
        has_muon = optimizer is None and bool(names["matrix"])
        base = recipe.release if has_muon else recipe.without_muon
        signs = tuple(dict.fromkeys((*base.at, *WITHOUT_VALIDATION)))
        self.release = replace(base, at=signs) if release is None else release
        self.parameter_names = {group: tuple(own) for group, own in names.items()}
        require(any(names.values()), f"{type(model).__name__} has no parameter to train")
        if optimizer is None and not has_muon:
            _warn(
                f"{type(model).__name__} has no matrix between what reads the inputs and the head, so that Muon moves "
                f"nothing and AdamW everything, at lr {recipe.learning_rate:g}; around an optimiser that you know to "
                "learn it: Steering(model, optimizer)"
            )
        self.optimizers = [optimizer] if optimizer is not None else recipe_optimizers(names, recipe, own_muon)
        groups = [group for one in self.optimizers for group in one.param_groups]
        decayed = [group for group in groups if "weight_decay" in group]
        require(decayed, f"{type(self.optimizers[0]).__name__} has no weight decay to steer")
        self.steps, self.log, self.decisions = 0, list[Row](), list[Row]()
        self._seen: Row = {}
        self._loss: Tensor | float = 0.0
        self._losses = 0
        super().__init__(groups, {})
        self._share()
        rates = [begin_rate(group) for group in decayed]
        own = max(float(group["weight_decay"]) * rate for group, rate in zip(decayed, rates, strict=True)) / UNIT
        if optimizer is not None and own > self.strong * (1 + 1e-6):
            _warn(
                f"your optimiser decays by λ = {own:.3g} (1000 · lr · weight_decay), and steering by less, at most "
                f"λ = {self.strong:g}; for yours: Steering(model, optimizer, weight_decay={own:.3g})"
            )
        has_decay = any(float(group["weight_decay"]) > 0 for group in decayed)
        for group, rate in zip(decayed, rates, strict=True):  # a group that is spared decay stays so, unless all are
            is_steered = optimizer is None or not has_decay or float(group["weight_decay"]) > 0
            group["decay_per_unit"] = UNIT / rate if is_steered else 0.0
        self._set(self.weight_decay)

    @property
    def weight_decay(self) -> float:
        """λ in force, of which each step takes a thousandth; the groups' own `weight_decay` is 10⁻³λ / lr.

        A monitor logs what stands in the groups, the largest: 0.5 where λ = 5 and lr = 0.01.
        """
        gentle = self.release.gentle
        begins = self.strong if gentle is None else min(gentle, self.strong)
        return float(self.decisions[-1]["weight_decay"]) if self.decisions else begins

    @property
    def is_released(self) -> bool:
        """Whether strong decay was let go."""
        return bool(self.decisions) and bool(self.decisions[-1]["is_final"])

    def observe(
        self, loss: Any = None, *, train_accuracy: Any = None, validation_accuracy: Any = None, step: Any = None
    ) -> None:
        """Say what was seen since the last step: each is optional, a number or a tensor with one.

        The loss is that of a batch; its mean between two decisions counts. `step` is yours, where it is not the number
        of steps taken here.
        """
        if loss is not None:
            is_single = isinstance(loss, Tensor) and loss.numel() == 1
            self._loss = self._loss + (loss.detach().reshape(()) if is_single else _number(loss, "loss"))
            self._losses += 1
        for name, value in (("train_accuracy", train_accuracy), ("validation_accuracy", validation_accuracy)):
            if value is not None:
                number = _number(value, name)
                require(not number < 0, f"{name} must be a share, from 0 to 1", number)
                require(not number > 1, f"{name} must be a share, from 0 to 1 (divide percent by 100)", number)
                self._seen[name] = number
        self.steps = self.steps if step is None else plain_step(step)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of the optimiser inside, and every `every` steps a decision; a closure's loss is observed."""
        loss, counted = None, self._losses
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
            if loss is not None and self._losses == counted:
                self.observe(loss)
        for one in self.optimizers:
            step_decoupled(one)
        self.steps += 1
        before = self.log[-1]["step"] if self.log else 0
        if self.steps // self.release.every > before // self.release.every:  # steps of yours may pass over a multiple
            self.decide()
        return loss

    def decide(self) -> float:
        """Log what was seen, and set λ by it; λ from now on. `step` calls it when it is due."""
        if self.validation is not None:
            with torch.no_grad():
                accuracy = self.validation()
            require(accuracy is not None, "validation must give an accuracy, got None")
            self.observe(validation_accuracy=accuracy)
        row: Row = {"step": self.steps, "norm": self._norm(), **self._seen}
        if self._losses:
            row["train_loss"] = float(self._loss) / self._losses
        self._seen, self._loss, self._losses = {}, 0.0, 0
        before = self.log[-1]["step"] if self.log else 0
        if not self.log and row.keys() <= {"step", "norm"}:
            _warn("steering has seen the norm alone: call observe(loss) before step()")
        elif not self.log and self.release.gentle is not None and not {"train_loss", "train_accuracy"} & row.keys():
            _warn("decay stays gentle until the training set is seen to be learnt: call observe(loss) before step()")
        self._warn_of_no_number(row)
        self.log.append({**row, "weight_decay": self.weight_decay})
        if not self.is_released:
            if before < LEARNT_BY <= self.steps and not self.release.patience:
                self._warn_unless_learnt()
            self._follow()
        return self.weight_decay

    def state_dict(self) -> dict[str, Any]:
        """The optimisers' states, and everything that was seen and decided, in plain values."""
        return {
            "optimizers": [one.state_dict() for one in self.optimizers],
            "steps": self.steps,
            "strong": self.strong,
            "seen": dict(self._seen),
            "loss": [float(self._loss), self._losses],
            "log": [dict(row) for row in self.log],
            "decisions": [dict(row) for row in self.decisions],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a state, as if it had not stopped."""
        for entry in ("optimizers", "steps", "strong", "seen", "loss", "log", "decisions"):
            require(entry in state_dict, f"the state is not one of Steering: it has no entry {entry!r}")
        stored = state_dict["optimizers"]
        if len(stored) != len(self.optimizers):
            raise InputError(f"the state has {len(stored)} optimisers, this steering has {len(self.optimizers)}")
        for one, own in zip(self.optimizers, stored, strict=True):
            one.load_state_dict(own)
        self._share()
        self.steps, self.strong = int(state_dict["steps"]), float(state_dict["strong"])
        self._seen, (loss, self._losses) = dict(state_dict["seen"]), state_dict["loss"]
        self._loss = float(loss)
        self.log, self.decisions = ([dict(row) for row in state_dict[name]] for name in ("log", "decisions"))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Parameters belong to the optimisers inside; only torch's own constructor may add them here."""
        if "decay_per_unit" in (self.param_groups[0] if self.param_groups else {}):
            raise InputError("parameters cannot be added while steering: give a model that has them all")
        super().add_param_group(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for one in self.optimizers:
            one.zero_grad(set_to_none)

    def __repr__(self) -> str:
        inside = " and ".join(type(one).__name__ for one in self.optimizers)
        return f"<Steering of {inside}: λ = {self.weight_decay:g} after {self.steps:,} steps>"

    def _share(self) -> None:
        """The groups and the state are the optimisers' own, so that schedulers act on them."""
        self.param_groups = [group for one in self.optimizers for group in one.param_groups]

    def _follow(self) -> None:
        """Apply the release to the log: a pure function of it. Without validation the norm decides as well."""
        at = self.release.at
        if any("validation_accuracy" in row for row in self.log) and "generalization" in at:
            at = tuple(sign for sign in at if sign != "norm_slows")
        found = released(replace(self.release, at=at), self.strong, self.log)
        was = self.weight_decay
        phase = found.phase
        if isinstance(phase, ReleasePhase) and (found.weight_decay != was or phase.is_sign):
            decided = {"step": self.steps, "was": was, "weight_decay": found.weight_decay, "why": str(phase)}
            self.decisions.append({**decided, "is_final": phase.is_sign})
            self._set(found.weight_decay)
            if phase in BREAKS:
                _warn(
                    f"step {self.steps}: {phase}; weight decay is let go from λ = {was:g} to "
                    f"{found.weight_decay:g} before more is lost"
                )
            elif phase is ReleasePhase.UNLEARNT and str(phase) not in {one["why"] for one in self.decisions[:-1]}:
                _warn(f"step {self.steps}: {phase}; weight decay is eased from λ = {was:g} to {found.weight_decay:g}")

    def _warn_of_no_number(self, row: Row) -> None:
        """Once for each thing that is seen: what is not finite is logged, and is a sign of nothing."""
        for name, value in row.items():
            if not isfinite(value) and all(isfinite(one.get(name, 0.0)) for one in self.log):
                _warn(f"step {row['step']}: {name} is {value}, from which steering can decide nothing")

    def _warn_unless_learnt(self) -> None:
        """Strong decay that keeps a model from learning its training set, of a release that does not ease it."""
        losses = [row["train_loss"] for row in self.log if "train_loss" in row]
        accuracies = [row["train_accuracy"] for row in self.log if "train_accuracy" in row]
        is_learnt = min(losses, default=inf) <= self.release.memorized_loss
        if is_learnt or max(accuracies, default=0.0) >= self.release.memorized or not (losses or accuracies):
            return
        seen = f"train accuracy {accuracies[-1]:.2f}" if accuracies else f"train loss {losses[-1]:.2g}"
        _warn(
            f"step {self.steps}: the training set is not learnt ({seen}); if that no longer improves, "
            f"λ = {self.weight_decay:g} is too strong for this model: give a smaller weight_decay, or a release with "
            "patience"
        )

    def _set(self, weight_decay: float) -> None:
        for group in self.param_groups:
            if "decay_per_unit" in group:
                group["weight_decay"] = weight_decay * group["decay_per_unit"]

    def _norm(self) -> float:
        """‖W‖ of all parameters of the model."""
        with torch.no_grad():
            squares = [parameter.detach().float().square().sum() for parameter in self.model.parameters()]
            return float(torch.stack([one.to(squares[0].device) for one in squares]).sum().sqrt())


def _number(value: Any, name: str) -> float:
    """A number, NaN too, which is no sign of anything; or one sentence."""
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must be a number, or a tensor with one, got {shown(value)}") from error


def _warn(text: str) -> None:
    """A warning at the line of the caller's own code."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(PLACES):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)
