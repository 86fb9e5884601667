"""When things happened in a run, and how it ended."""

from grokscope.timeline.crossings import first_step, first_step_below, level_step
from grokscope.timeline.dips import Dips, dips_after
from grokscope.timeline.events import Crossing, Flag, Timeline, timeline_of
from grokscope.timeline.leads import Lead, LeadStatus, lead
from grokscope.timeline.outcomes import Outcome, outcome
from grokscope.timeline.phases import Phase, liberation_step, phase_at, rank_one_step

__all__ = [
    "Crossing",
    "Dips",
    "Flag",
    "Lead",
    "LeadStatus",
    "Outcome",
    "Phase",
    "Timeline",
    "dips_after",
    "first_step",
    "first_step_below",
    "lead",
    "level_step",
    "liberation_step",
    "outcome",
    "phase_at",
    "rank_one_step",
    "timeline_of",
]
