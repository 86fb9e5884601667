"""What is done to a run from outside: forks, rules that decide when to change λ, and rivals that change gradients."""

from grokscope.steering.closed_loop import Change, Control, Phase, controlled
from grokscope.steering.forks import forked, needs_sibling, sibling_of
from grokscope.steering.optimizers import Grokfast, OrthogonalGradient
from grokscope.steering.triggers import Decision, decision, drawn_step

__all__ = [
    "Change",
    "Control",
    "Decision",
    "Grokfast",
    "OrthogonalGradient",
    "Phase",
    "controlled",
    "decision",
    "drawn_step",
    "forked",
    "needs_sibling",
    "sibling_of",
]
