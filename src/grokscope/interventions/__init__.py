"""What is done to a run from outside: forks that change λ or the weights, and rules that decide when to change λ."""

from grokscope.interventions.closed_loop import Change, Control, Phase, controlled
from grokscope.interventions.forks import forked, needs_sibling, sibling_of
from grokscope.interventions.triggers import Decision, decision, drawn_step

__all__ = [
    "Change",
    "Control",
    "Decision",
    "Phase",
    "controlled",
    "decision",
    "drawn_step",
    "forked",
    "needs_sibling",
    "sibling_of",
]
