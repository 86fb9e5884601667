"""Every claim of the paper that a run can speak to, each with the rule by which it is judged.

The rules are written from the paper's words alone, before any result: `rules_digest` fixes them.
"""

from collections.abc import Iterable
from hashlib import sha256

from grokscope.studies.claims import (
    accelerator,
    architecture,
    forks,
    interpretation,
    law,
    leads,
    norms,
    phases,
    rivals,
    transfer,
)
from grokscope.studies.claims.claim import Claim, Finding, Verdict
from grokscope.studies.evidence import Evidence

__all__ = ["CLAIMS", "Claim", "Finding", "Verdict", "judged", "rules_digest"]

CLAIMS: tuple[Claim, ...] = (
    *leads.CLAIMS,
    *rivals.CLAIMS,
    *phases.CLAIMS,
    *interpretation.CLAIMS,
    *architecture.CLAIMS,
    *forks.CLAIMS,
    *law.CLAIMS,
    *norms.CLAIMS,
    *accelerator.CLAIMS,
    *transfer.CLAIMS,
)


def judged(evidence: Evidence) -> dict[str, Finding]:
    """What the evidence says of every claim, by its name."""
    return {claim.name: claim.judge(evidence) for claim in CLAIMS}


def rules_digest(claims: Iterable[Claim] = CLAIMS) -> str:
    """SHA-256 over names, statements and rules: whoever has it knows that no rule was changed after a result."""
    texts = (text for claim in claims for text in (claim.name, claim.statement, claim.rule))
    return sha256("\0".join(texts).encode()).hexdigest()
