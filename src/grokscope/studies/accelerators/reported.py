"""What the three papers report, and what each leaves open: numbers with their places, nothing measured here."""

__all__ = [
    "ADAMW_EPOCHS",
    "ADAM_STEPS",
    "ASSUMED",
    "GROKFAST_FACTOR",
    "GROKFAST_STEPS",
    "MUON_EPOCHS",
    "MUON_FACTOR",
    "ORTHOGONAL_EPOCHS",
    "PAPERS",
    "WINDOW_FACTOR",
]

PAPERS = {
    "2405.20233": "Lee et al. 2024, Grokfast",
    "2501.04697": "Prieto et al. 2025, ⊥Grad and StableMax",
    "2504.16041": "Tveit et al. 2025, Muon",
}
# Grokfast: the table of its public code (README, "Algorithmic data"): iterations to 95 % validation accuracy.
ADAM_STEPS, GROKFAST_STEPS, GROKFAST_FACTOR = 39_890, 910, 43.84
WINDOW_FACTOR = 50.49  # of the variant that averages the last 100 gradients: 790 iterations
# ⊥Grad: Figure 6 has no numbers; the commands of the public code train its MLPs for so many epochs, each one step.
ORTHOGONAL_EPOCHS = 500
# Muon: abstract and Figure 5, means over tasks and softmaxes.
ADAMW_EPOCHS, MUON_EPOCHS = 153.09, 102.89
MUON_FACTOR = ADAMW_EPOCHS / MUON_EPOCHS

# By paper: what differs here from the authors' own setting, or is not known of it and was assumed.
ASSUMED: dict[str, tuple[str, ...]] = {
    "2405.20233": (
        "The authors' block replaces the stream by its LayerNorm before attention is added; here the stream itself is "
        "added to, as usual.",
        "Their sequence has a constant token for the operation, their pairs leave out b = 0, their head has no bias, "
        "and the first of ten steps of warm-up has η = 0.",
        "The paper reports one run of each; how many seeds were tried is not known.",
    ),
    "2501.04697": (
        "The paper's text gives curves and no steps; learning rates, widths and moments are those of its public code. "
        "There AdamW inside ⊥Grad has the moments and ε of PyTorch's defaults, not those of AdamW alone.",
        "Our MLP reads a third one-hot vector, of a constant token: a bias of its first layer.",
        "Their transformer has LayerNorms after each branch, no positions, reads the second number's position and "
        "trains on pairs without 0; ours has LayerNorms before each branch and reads a separator. Figure 6 names "
        "subtraction, its command in the code addition; subtraction is trained here.",
        "StableMax is summed in float64 there, and in float32 here. Softmax without decay is trained for 20,000 steps, "
        "as in Figure 2; StableMax for 80,000, as in Figure 1.",
        "⊥Grad keeps the gradient's length, as in the code; Definition 7 does not.",
        "One run of each is drawn.",
    ),
    "2504.16041": (
        "The paper names β₁ = 0.9, β₂ = 0.98, the tasks and shares of rows. Learning rate (10⁻³), decay (1), width "
        "(128), layers (2), heads (1), dropout (0.2), batch (512) and warm-up (10 steps) are the defaults of the code "
        "that it cites.",
        "Muon's learning rate is not published: 0.02, its author's default, was assumed, with momentum 0.95 and the "
        "same decay 1 − ηλ for all parameters. Which parameters Muon moves is not said: here the matrices between "
        "embeddings and head.",
        "Their model has RMSNorm, rotary positions and gated SiLU; ours LayerNorm, learnt positions and GELU.",
        "Tasks with a group (addition, division, multiplication) only: exponentiation, greatest common divisor and "
        "parity of 10 bits are left out, and so is sparsemax.",
        "How many runs each mean has is not said.",
    ),
}
