"""The leads of the paper."""

from hypothesis import settings

from paper_tables import ADDITION

LEADS = [row.lead for row in ADDITION.values()]
PRIMES = [row.modulus for row in ADDITION.values()]
few = settings(max_examples=25, deadline=None)
