"""Every way of making a run grok sooner that is compared: families of twelve settings, and the arms chosen from them.

All families have the same tuning budget. What a setting leaves alone is that of a plain run at λ = 1.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from grokscope.specs import ClosedLoop, ReadingSpec, Release, RunSpec, Trigger
from grokscope.tasks import named_task

__all__ = [
    "ADAMW",
    "CHOICE_FILE",
    "EVERY",
    "FAMILIES",
    "HINDSIGHT",
    "PUBLISHED",
    "SETTINGS",
    "Setting",
    "chosen_settings",
    "final_arms",
]

EVERY = 50  # steps between evaluations, at which alone anything reacts
SETTINGS = 12  # of each family
FINAL_ARMS = 6
ADAMW = "AdamW"
HINDSIGHT = (0.3, 1.0, 2.0, 3.0, 5.0, 7.0)  # λ of AdamW, the best of which is taken for each task after the fact
CHOICE_FILE = Path(__file__).with_name("chosen.json")  # written from the tuning runs, before the final runs


@dataclass(frozen=True)
class Setting:
    """What is changed of a plain run."""

    training: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Training`."""
    initialization: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Initialization`."""
    trigger: Trigger | None = None
    """The seed paper's accelerator."""
    control: ClosedLoop | None = None
    """Our closed loop."""
    release: Release | None = None
    """When strong decay is let go."""

    def apply(self, run: RunSpec) -> RunSpec:
        """The run in this setting; on a group an FSD trigger waits for the FSD_gen that counts as synchronised there.

        >>> Setting({"weight_decay": 3.0}).apply(RunSpec()).training.weight_decay
        3.0
        """
        trigger = self.trigger
        if trigger is not None and trigger.signal == "fsd" and named_task(run.task).is_read_in_irreps:
            trigger = replace(trigger, at_least=ReadingSpec().fsd_gen_sync)
        training = dict(self.training)
        schedule = training.get("weight_decay_schedule", ())
        training["weight_decay_schedule"] = tuple(one for one in schedule if one[0] < run.training.steps)
        return replace(
            run,
            training=replace(run.training, **training),
            initialization=replace(run.initialization, **self.initialization),
            trigger=trigger,
            control=self.control,
            release=self.release,
        )


def _decays(*decays: float, **training: Any) -> dict[str, Setting]:
    return {f"λ = {decay:g}": Setting({"weight_decay": decay, **training}) for decay in decays}


def _triggers(signal: Any) -> dict[str, Setting]:
    return {
        f"λ = {decay:g}{', restored' * restored}": Setting(
            trigger=Trigger(signal, weight_decay=decay, every=EVERY, restore_after_grokking=restored)
        )
        for decay in (2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
        for restored in (False, True)
    }


def _release(*at: Any, **fields: Any) -> Release:
    return Release(at=at, every=EVERY, **fields)


AT_ONCE = _release("generalization")
# In families of their own the same with easing and without would be ranked by chance, for most of their runs are equal:
# so what is let go at generalisation with Muon is always eased, and the ablation says what that gives.
EASED = _release("generalization", patience=1000)
GENTLE = _release("generalization", "accuracy_breaks", "loss_rises", patience=1000, gentle=1.0)
MUON = {"optimizer": "muon"}
# Ways of letting go that need no validation, each alone. A norm of 20 is the target of the lead that this follows.
WITHOUT_VALIDATION: dict[str, Release] = {
    "norm slows to a quarter": _release("norm_slows", slowdown=0.25),
    "norm slows to a tenth": _release("norm_slows", slowdown=0.1),
    "norm down to 20": _release("norm_target", norm_target=20.0),
    "train accuracy breaks": _release("accuracy_breaks"),
    "train loss rises": _release("loss_rises"),
    "annealed over 1,000 steps": _release(anneal_steps=1000),
}
FAMILIES: dict[str, dict[str, Setting]] = {
    ADAMW: _decays(0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0),
    "FSD trigger": _triggers("fsd"),
    "memorisation trigger": _triggers("train_accuracy"),
    "closed loop": {
        f"λ up to {highest:g}, train loss {loss:g}": Setting(
            control=ClosedLoop(every=EVERY, factor=2.0, highest=highest, train_loss=loss)
        )
        for highest in (3.0, 5.0, 7.0, 10.0)
        for loss in (0.1, 0.5, 1.0)
    },
    "Grokfast": {
        f"λ = {decay:g}, ℓ = {lamb:g}": Setting({"weight_decay": decay, "gradient": "grokfast", "grokfast_lamb": lamb})
        for decay in (0.0, 1.0, 3.0, 5.0)
        for lamb in (1.0, 2.0, 5.0)
    },
    "orthogonal gradient": {
        f"λ = {decay:g}, η = {rate:g}": Setting(
            {"weight_decay": decay, "gradient": "orthogonal", "learning_rate": rate}
        )
        for decay in (0.0, 0.3, 1.0, 3.0, 5.0, 7.0)
        for rate in (1e-3, 3e-3)
    },
    "small initialisation": {
        f"λ = {decay:g}, {words}": Setting({"weight_decay": decay}, changed)
        for words, changed in (
            ("embeddings of 0.02", {"embedding_std": 0.02}),
            ("embeddings of 0.1", {"embedding_std": 0.1}),
            ("all of 0.3", {"scale": 0.3}),
            ("all of 0.5", {"scale": 0.5}),
        )
        for decay in (1.0, 3.0, 5.0)
    },
    "decay on embeddings": {
        f"λ = {decay:g}, {embedded:g} on embeddings": Setting(
            {"weight_decay": decay, "embedding_decay": embedded / decay}
        )
        for decay in (0.3, 1.0, 2.0, 3.0)
        for embedded in (10.0, 20.0, 40.0)
    },
    "schedule": {
        f"λ = {decay:g} for {steps:,} steps": Setting({"weight_decay": decay, "weight_decay_schedule": ((steps, 1.0),)})
        for decay in (3.0, 5.0, 7.0)
        for steps in (500, 1000, 2000, 4000)
    },
    "AdamW, let go": {
        f"λ = {decay:g}, {words}": Setting({"weight_decay": decay}, release=release)
        for words, release in (
            ("at generalisation", AT_ONCE),
            ("norm slows to a tenth", WITHOUT_VALIDATION["norm slows to a tenth"]),
            ("norm down to 20", WITHOUT_VALIDATION["norm down to 20"]),
            ("annealed over 2,000 steps", _release(anneal_steps=2000)),
        )
        for decay in (3.0, 5.0, 7.0)
    },
    "Muon": {
        f"λ = {decay:g}, η = {rate:g}": Setting({"weight_decay": decay, "muon_learning_rate": rate, **MUON})
        for decay in (0.3, 1.0, 2.0, 3.0, 5.0, 7.0)
        for rate in (0.02, 0.05)
    },
    # To λ = 1 or to 2, because what was found has to stay, too.
    "Muon, let go": {
        f"λ = {decay:g}{' to 2' * (end != 1)}, η = {rate:g}": Setting(
            {"weight_decay": decay, "muon_learning_rate": rate, **MUON}, release=replace(EASED, weight_decay=end)
        )
        for decay, end in ((3.0, 1.0), (5.0, 1.0), (5.0, 2.0), (7.0, 1.0))
        for rate in (0.01, 0.02, 0.05)
    },
    # λ = 1 before; also let go when what is memorised breaks, for only here strong decay meets what is memorised.
    "Muon, strong from memorisation to generalisation": {
        f"λ = {decay:g}, η = {rate:g}": Setting(
            {"weight_decay": decay, "muon_learning_rate": rate, **MUON}, release=GENTLE
        )
        for decay in (3.0, 5.0, 7.0, 10.0)
        for rate in (0.01, 0.02, 0.05)
    },
    "Muon, let go without validation": {
        f"λ = {decay:g}, {words}": Setting({"weight_decay": decay, **MUON}, release=release)
        for words, release in WITHOUT_VALIDATION.items()
        for decay in (3.0, 5.0)
    },
    "Muon, let go, small embeddings": {
        f"λ = {decay:g}, embeddings of {std:g} with {factor:g} λ": Setting(
            {"weight_decay": decay, "embedding_decay": factor, **MUON}, {"embedding_std": std}, release=EASED
        )
        for decay in (3.0, 5.0)
        for std in (0.02, 0.1, 0.3)
        for factor in (1.0, 3.0)
    },
}

# What others have published, each judged by a claim: the family, and who.
PUBLISHED: dict[str, str] = {
    "FSD trigger": "the seed paper's accelerator (§6)",
    "Grokfast": "Lee et al. 2024, arXiv 2405.20233",
    "orthogonal gradient": "⊥Grad, Prieto et al. 2025, arXiv 2501.04697",
    "small initialisation": "Liu et al. 2022 (Omnigrok), arXiv 2210.01117",
    "Muon": "Tveit et al. 2025, arXiv 2504.16041",
}


@cache
def chosen_settings() -> dict[str, str]:
    """The setting of each family that the tuning runs chose, best family first; empty until they were run.

    >>> set(chosen_settings()) <= set(FAMILIES)
    True
    """
    return dict(json.loads(CHOICE_FILE.read_text())) if CHOICE_FILE.exists() else {}


def final_arms() -> dict[str, Setting]:
    """The six arms of the final, each by its family: AdamW at one λ for all tasks, and the five best other families.

    >>> len(final_arms()) in (0, FINAL_ARMS)
    True
    """
    chosen = chosen_settings()
    others = [family for family in chosen if family != ADAMW][: FINAL_ARMS - 1]
    return {family: FAMILIES[family][chosen[family]] for family in ([ADAMW] if chosen else []) + others}
