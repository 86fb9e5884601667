"""The paper's printed tables, as data: each is named by its LaTeX label, and nothing is changed or filled in."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Configuration:
    """A row of tab:cross or tab:exloss."""

    modulus: int
    """p."""
    grok: int
    """Grok step."""
    sync: int
    """Step at which FSD is synchronised."""
    lead: int
    """The printed lead."""


# tab:cross (Table 2): experiment → p, grok, sync, lead.
CROSS = {
    "add_mod97_s42": Configuration(97, 4000, 1500, 2500),
    "add_mod53_s42": Configuration(53, 5000, 2000, 3000),
    "add_mod113_s42": Configuration(113, 2500, 1500, 1000),
    "add_mod131_s42": Configuration(131, 2500, 1000, 1500),
    "add_mod71_s42": Configuration(71, 3500, 2000, 1500),
    "add_mod97_s0": Configuration(97, 4000, 1000, 3000),
    "add_mod97_s1": Configuration(97, 3000, 2500, 500),
    "add_mod97_s2": Configuration(97, 3000, 2500, 500),
    "add_mod97_s123": Configuration(97, 3000, 1000, 2000),
    "sub_mod97_s42": Configuration(97, 5500, 4500, 1000),
    "mult_mod97_s42": Configuration(97, 3000, 13000, -10000),
}
ADDITION = {name: row for name, row in CROSS.items() if name.startswith("add")}

# tab:exloss (Table 3): experiment → grok, FSD sync, FSD lead, ExLoss sync, ExLoss lead.
EXLOSS = {
    "add_mod97_s42": (4000, 1500, 2500, 4000, 0),
    "add_mod53_s42": (5000, 2000, 3000, 5000, 0),
    "add_mod113_s42": (2500, 1500, 1000, 4000, -1500),
    "add_mod97_s123": (3000, 1000, 2000, 3000, 0),
    "add_mod97_s0": (4000, 1000, 3000, 4000, 0),
    "add_mod97_s1": (3000, 2500, 500, 3000, 0),
    "add_mod97_s2": (3000, 2500, 500, 3000, 0),
    "add_mod71_s42": (3500, 2000, 1500, 3500, 0),
    "add_mod131_s42": (2500, 1000, 1500, 2500, 0),
}

# tab:wd_intervention (Table 4): λ → grok step, Δt, mark († grokked then unstable, ‡ unstable).
WD_INTERVENTION = {
    1.0: (4000, 3000, ""),
    2.0: (2500, 1500, ""),
    3.0: (2000, 1000, ""),
    4.0: (2000, 1000, "†"),
    5.0: (2000, 1000, "†"),
    10.0: (None, None, "‡"),
}

# tab:rank (Table 5): step, validation accuracy, median rank, total norm, phase.
RANK = (
    (500, 0.006, 6, 76.72, "1"),
    (1000, 0.106, 4, 51.93, "1"),
    (1500, 0.020, 3, 37.78, "1"),
    (2000, 0.174, 2, 30.56, "1"),
    (2500, 0.053, 1, 28.60, "2"),
    (3000, 0.275, 1, 26.67, "2"),
    (3500, 0.352, 1, 24.40, "2"),
    (4000, 0.997, 1, 22.94, "Grokking"),
    (5000, 1.000, 1, 23.94, "post-grokking"),
)

# tab:arch_ablation (Table 8): architecture → grok step, FSD sync, lead.
ARCH_ABLATION = {
    "2-layer standard": (4000, 2500, 1500),
    "1-layer standard": (4500, 5500, -1000),
    "2-layer attention-only": (4000, 1000, 3000),
    "2-layer MLP-only": (None, 500, None),
}

# tab:timing_fit (Table 9): λ → observed Δt, predicted Δt, error.
TIMING_FIT = {
    1.0: (3000, 3600, 600),
    2.0: (1500, 1800, 300),
    3.0: (1000, 1200, 200),
    4.0: (1000, 900, 100),
    5.0: (1000, 720, 280),
    10.0: (None, 360, None),
}
FORK_NORM = 51.93  # its caption
# §6, (ii). The norms behind it are not printed: neither it nor its variation of 0.13 can be computed again.
THRESHOLD_NORM = 23.5

# tab:crossprime (Table 10): p → {λ: (mean Δt, standard deviation)}, C_p, R². Its last column, the range of R² per
# draw, cannot be computed again: no draw is printed.
CROSSPRIME = {
    53: ({1.0: (4100, 369), 2.0: (2200, 190), 3.0: (1540, 49), 5.0: (1200, 63)}, 4780, 0.89),
    97: ({1.0: (2425, 249), 2.0: (1300, 187), 3.0: (850, 87), 5.0: (667, 125)}, 2727, 0.94),
    131: ({1.0: (1680, 40), 2.0: (900, 0), 3.0: (600, 0)}, 1760, 0.99),
}

# tab:transfer (Table 11): seed → grok, FSD_gen sync, lead, lead of the Z_p control (None: never).
TRANSFER = {
    0: (6900, 3100, 3800, -700),
    1: (3700, 2200, 1500, None),
    42: (2100, 100, 2000, None),
    2: (5700, 3600, 2100, -2200),
    7: (6200, 4000, 2200, -3300),
    123: (3300, 400, 2900, 2900),
}
