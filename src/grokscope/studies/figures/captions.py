"""What the paper says of its figures in numbers that no table of it holds: nothing is changed or filled in."""

__all__ = [
    "ACCELERATED",
    "DECAY_SHARE",
    "GAP_IN_PHASE_2",
    "GENERALIZATION_GAP",
    "THEORY_CONSTANT",
    "THRESHOLD_NORM",
]

GENERALIZATION_GAP = {1000: 0.894, 4000: 0.003}  # Figure 4: step → gap
GAP_IN_PHASE_2 = ((2500, 4000), (0.52, 0.72))  # Figure 4: steps, and where the gap is said to stay
THEORY_CONSTANT = 3000  # Figure 3: Δt = 3,000/λ
THRESHOLD_NORM = 23.5  # Figure 7: the norm at grokking
DECAY_SHARE = 0.2  # §6: "the fitted rate is ≈ 0.2× the pure-decay value ηλ"
ACCELERATED = (0.36, 0.43)  # Figure 8: share of the steps that the FSD trigger saves
