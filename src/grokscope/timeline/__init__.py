"""When things happened in a run, and how it ended."""

from typing import TYPE_CHECKING

from grokscope.lazy import exports
from grokscope.timeline.crossings import first_step, first_step_below, level_step
from grokscope.timeline.dips import Dips, dips_after
from grokscope.timeline.leads import Lead, LeadStatus, lead
from grokscope.timeline.outcomes import Outcome, outcome
from grokscope.timeline.phases import Phase, liberation_step, phase_at, rank_one_step
from grokscope.timeline.stable import Stability, StabilityStatus, stability
from grokscope.timeline.success import judged_columns, judged_row, success_level

if TYPE_CHECKING:  # these load numpy; what was reached can be judged without it
    from grokscope.timeline.events import Crossing, Flag, Timeline, timeline_of
else:
    __getattr__, __dir__ = exports(__name__, {"events": ["Crossing", "Flag", "Timeline", "timeline_of"]})

__all__ = [
    "Crossing",
    "Dips",
    "Flag",
    "Lead",
    "LeadStatus",
    "Outcome",
    "Phase",
    "Stability",
    "StabilityStatus",
    "Timeline",
    "dips_after",
    "first_step",
    "first_step_below",
    "judged_columns",
    "judged_row",
    "lead",
    "level_step",
    "liberation_step",
    "outcome",
    "phase_at",
    "rank_one_step",
    "stability",
    "success_level",
    "timeline_of",
]
