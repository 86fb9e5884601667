"""What is done to a run from outside: forks, rules that decide when to change λ, and rivals that change gradients."""

from grokscope.steering.closed_loop import Change, Control, Phase, controlled
from grokscope.steering.forks import forked, has_paired_run, paired_run
from grokscope.steering.muon import Muon
from grokscope.steering.optimizers import Grokfast, OrthogonalGradient
from grokscope.steering.recipes import FAST, RECIPES, Recipe
from grokscope.steering.releases import ReleasePhase, released
from grokscope.steering.triggers import Decision, decision, drawn_step

__all__ = [
    "FAST",
    "RECIPES",
    "Change",
    "Control",
    "Decision",
    "Grokfast",
    "Muon",
    "OrthogonalGradient",
    "Phase",
    "Recipe",
    "ReleasePhase",
    "controlled",
    "decision",
    "drawn_step",
    "forked",
    "has_paired_run",
    "paired_run",
    "released",
]
