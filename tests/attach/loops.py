"""Training loops of many kinds: each trains a model for a few steps, and calls `evaluate` where a user would."""

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from hosts import SYMBOLS, Host
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from grokscope.tasks import named_task, split

STEPS, BATCH = 6, 6
Evaluate = Callable[[nn.Module, int], Any]
Found = dict[str, Any]
"""What a loop leaves: its history, and everything else that it holds."""

TASK = named_task(f"add_mod{SYMBOLS}")
ROWS = split(TASK, 0.6, seed=0).train.tolist()
TOKENS, ANSWERS = torch.tensor(TASK.tokens)[ROWS], torch.tensor(TASK.answers)[ROWS]


def loss_of(model: nn.Module, rows: Tensor | None = None) -> Tensor:
    rows = torch.randint(len(TOKENS), (BATCH,)) if rows is None else rows
    return nn.functional.cross_entropy(model(TOKENS[rows]).float(), ANSWERS[rows])


def trainable(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(trainable(model), lr=0.01, weight_decay=0.5)


def update(optimizer: torch.optim.Optimizer, loss: Tensor) -> float:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def plain(model: Host, evaluate: Evaluate) -> Found:
    optimizer, losses = adamw(model), []
    for step in range(STEPS):
        evaluate(model, step)
        losses.append(update(optimizer, loss_of(model)))
    return {"losses": losses, "optimizer": optimizer.state_dict()}


def accumulation(model: Host, evaluate: Evaluate) -> Found:
    """Evaluates while half of a gradient is there."""
    optimizer, norms = torch.optim.SGD(trainable(model), lr=0.1, momentum=0.9), []
    for step in range(STEPS):
        loss_of(model).backward()
        evaluate(model, step)
        loss_of(model).backward()
        norms.append(float(nn.utils.clip_grad_norm_(trainable(model), 1.0)))
        optimizer.step()
        optimizer.zero_grad(set_to_none=step % 2 == 0)
    return {"norms": norms, "optimizer": optimizer.state_dict()}


def between_forward_and_backward(model: Host, evaluate: Evaluate) -> Found:
    optimizer, losses = adamw(model), []
    for step in range(STEPS):
        loss = loss_of(model)
        evaluate(model, step)
        losses.append(update(optimizer, loss))
    return {"losses": losses, "optimizer": optimizer.state_dict()}


def mixed_precision(model: Host, evaluate: Evaluate) -> Found:
    """Evaluates inside autocast, whose casts of weights are cached."""
    optimizer, losses = adamw(model), []
    for step in range(STEPS):
        with torch.autocast("cpu", torch.bfloat16):
            first = loss_of(model)
            evaluate(model, step)
            loss = first + loss_of(model)
        losses.append(update(optimizer, loss))
    return {"losses": losses, "optimizer": optimizer.state_dict()}


def averaged_model(model: Host, evaluate: Evaluate) -> Found:
    """Evaluates the average, and updates the averages of its batch norms."""
    optimizer, losses = adamw(model), []
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
    for step in range(STEPS):
        evaluate(average.module, step)
        losses.append(update(optimizer, loss_of(model)))
        average.update_parameters(model)
    torch.optim.swa_utils.update_bn([TOKENS], average)
    return {"losses": losses, "average": average.state_dict(), "held": vars(average.module)}


def schedulers(model: Host, evaluate: Evaluate) -> Found:
    optimizer, rates = adamw(model), []
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=STEPS + 1)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    for step in range(STEPS):
        loss = update(optimizer, loss_of(model))
        cycle.step()
        evaluate(model, step)
        plateau.step(loss)
        rates.append([group["lr"] for group in optimizer.param_groups])
    return {"rates": rates, "plateau": plateau.state_dict()}


def closures(model: Host, evaluate: Evaluate) -> Found:
    optimizer, losses = torch.optim.LBFGS(trainable(model), lr=0.1, max_iter=2, history_size=3), []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        losses.append(loss.item())
        return loss

    for step in range(STEPS):
        evaluate(model, step)
        optimizer.step(closure)
    return {"losses": losses, "optimizer": optimizer.state_dict()}


def two_passes(model: Host, evaluate: Evaluate) -> Found:
    """Sharpness-aware: a gradient at weights that are moved and moved back; evaluates while they are moved."""
    optimizer, losses = adamw(model), []
    for step in range(STEPS):
        rows = torch.randint(len(TOKENS), (BATCH,))
        optimizer.zero_grad()
        loss_of(model, rows).backward()
        before = [parameter.detach().clone() for parameter in trainable(model)]
        with torch.no_grad():
            for parameter in trainable(model):
                if parameter.grad is not None:
                    parameter += 0.05 * parameter.grad.sign()
        evaluate(model, step)
        optimizer.zero_grad()
        loss = loss_of(model, rows)
        loss.backward()
        with torch.no_grad():
            for parameter, value in zip(trainable(model), before, strict=True):
                parameter.copy_(value)
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "optimizer": optimizer.state_dict()}


def two_optimizers(model: Host, evaluate: Evaluate) -> Found:
    heads = {id(parameter) for parameter in model.head.parameters()}
    bodies = [parameter for parameter in trainable(model) if id(parameter) not in heads]
    several = [torch.optim.Adam(model.head.parameters(), lr=0.01)]
    several += [torch.optim.SGD(bodies, lr=0.1, momentum=0.9)] if bodies else []
    losses = []
    for step in range(STEPS):
        optimizer = several[step % len(several)]
        losses.append(update(optimizer, loss_of(model)))
        evaluate(model, step)
    return {"losses": losses, "optimizers": [optimizer.state_dict() for optimizer in several]}


class Shifted(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
    """Rows, now and then another one, by Python's own generator."""

    def __len__(self) -> int:
        return len(TOKENS)

    def __getitem__(self, place: int) -> Tensor:
        return torch.tensor((place + random.randrange(3)) % len(TOKENS))


def batches(generator: torch.Generator) -> Iterator[Tensor]:
    sampler = torch.utils.data.RandomSampler(Shifted(), generator=generator)
    while True:
        yield from torch.utils.data.DataLoader(Shifted(), BATCH, sampler=sampler, drop_last=True, generator=generator)


def data_loader(model: Host, evaluate: Evaluate) -> Found:
    optimizer, losses, generator = adamw(model), [], torch.Generator().manual_seed(7)
    seen = []
    for step, rows in zip(range(STEPS), batches(generator), strict=False):
        evaluate(model, step)
        losses.append(update(optimizer, loss_of(model, rows)))
        seen.append(rows.tolist())
    return {"losses": losses, "seen": seen, "generator": generator}


def random_states_read(model: Host, evaluate: Evaluate) -> Found:
    """Goes back to a random state now and then, as loops with paired batches do."""
    optimizer, losses, states = adamw(model), [], []
    for step in range(STEPS):
        state = torch.get_rng_state()
        evaluate(model, step)
        states += [torch.get_rng_state(), random.getstate()]
        losses.append(update(optimizer, loss_of(model)))
        if step % 2:
            torch.set_rng_state(state)
    return {"losses": losses, "states": states}


RECORDED: list[float] = []


class Recorder:
    """Keeps what passes, as an object with a bound hook."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.last: Tensor | None = None

    def keep(self, module: nn.Module, inputs: Any, output: Tensor) -> None:
        self.sizes.append(len(output))
        self.last = output.detach()


def users_hooks(model: Host, evaluate: Evaluate) -> Found:
    """Hooks that record into a closure, a global and an object, and one that changes what passes."""
    RECORDED.clear()
    optimizer, losses, recorder = adamw(model), [], Recorder()
    kept: list[float] = []
    shifts: dict[str, float] = {"shift": 0.0}

    def record(module: nn.Module, inputs: Any, output: Tensor) -> None:
        kept.append(float(output.detach().float().mean()))
        RECORDED.append(kept[-1])

    def shift(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        shifts["shift"] += 0.01
        return output + shifts["shift"]

    model.act.register_forward_hook(recorder.keep)
    model.act.register_forward_hook(record)
    model.body.register_forward_hook(shift)
    model.head.weight.register_hook(lambda gradient: kept.append(float(gradient.float().norm())))
    for step in range(STEPS):
        evaluate(model, step)
        losses.append(update(optimizer, loss_of(model)))
    return {"losses": losses, "kept": kept, "recorded": [*RECORDED], "recorder": vars(recorder), "shifts": shifts}


def cached_parametrizations(model: Host, evaluate: Evaluate) -> Found:
    """Evaluates where parametrised weights are computed once for several passes."""
    optimizer, losses = adamw(model), []
    for step in range(STEPS):
        with nn.utils.parametrize.cached():
            evaluate(model, step)
            loss = loss_of(model) + loss_of(model)
        losses.append(update(optimizer, loss))
    return {"losses": losses, "optimizer": optimizer.state_dict()}


def penalised_gradients(model: Host, evaluate: Evaluate) -> Found:
    """A gradient of a gradient; evaluates while the first graph is there."""
    optimizer, losses = adamw(model), []
    for step in range(STEPS):
        loss = loss_of(model)
        gradients = torch.autograd.grad(loss, trainable(model), create_graph=True, allow_unused=True)
        evaluate(model, step)
        penalty = sum(gradient.float().square().sum() for gradient in gradients if gradient is not None)
        losses.append(update(optimizer, loss + 0.1 * penalty))
    return {"losses": losses, "optimizer": optimizer.state_dict()}


def own_validation(model: Host, evaluate: Evaluate) -> Found:
    """Switches modes itself, stops early, and goes back to the best weights."""
    optimizer, losses, best = adamw(model), [], copy.deepcopy(model.state_dict())
    for step in range(STEPS):
        update(optimizer, loss_of(model))
        modes = [module.training for module in model.modules()]
        model.eval()
        evaluate(model, step)
        with torch.no_grad():
            losses.append(loss_of(model, torch.arange(len(TOKENS))).item())
        for module, mode in zip(model.modules(), modes, strict=True):
            module.training = mode
        if losses[-1] == min(losses):
            best = copy.deepcopy(model.state_dict())
    return {"losses": losses, "best": best}


LOOPS: dict[str, Callable[[Host, Evaluate], Found]] = {
    "plain": plain,
    "gradient accumulation": accumulation,
    "between forward and backward": between_forward_and_backward,
    "mixed precision": mixed_precision,
    "averaged model": averaged_model,
    "schedulers": schedulers,
    "closures": closures,
    "two passes": two_passes,
    "two optimisers": two_optimizers,
    "data loader": data_loader,
    "random states read": random_states_read,
    "user's hooks": users_hooks,
    "cached parametrisations": cached_parametrizations,
    "penalised gradients": penalised_gradients,
    "own validation": own_validation,
}
