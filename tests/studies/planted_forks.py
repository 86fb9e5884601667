"""Forks with the reported times to grok."""

from typing import Any

from paper_tables import WD_INTERVENTION


def reported_forks() -> dict[str, dict[str, Any]]:
    """The six branches of Table 4."""
    return {
        f"add_mod97_s42_x{decay:g}": {"grok": grok, "collapse": mark == "†", "learnt": mark != "‡", "last": 9000}
        for decay, (grok, _, mark) in WD_INTERVENTION.items()
    }
