"""The paper's reported tables as data, by their LaTeX labels: nothing is changed, corrected or filled in."""

from dataclasses import dataclass

from grokscope.view.table import Value

__all__ = ["REPORTED", "Reported"]


@dataclass(frozen=True)
class Reported:
    """One reported table."""

    label: str
    """Its LaTeX label, `tab:cross`."""
    columns: tuple[str, ...]
    """What its rows hold, in order."""
    rows: dict[str, tuple[Value, ...]]
    """Name of the row → its values; None where nothing, or a dash, is reported."""

    def get(self, row: str, column: str) -> Value:
        """A reported value; None where the paper has none."""
        return dict(zip(self.columns, self.rows[row], strict=True)).get(column) if row in self.rows else None


CONFIGS = Reported(
    "tab:configs",
    ("operation", "modulus", "seed", "grok"),
    {
        "add_mod97_s42": ("+", 97, 42, 4000),
        "add_mod97_s123": ("+", 97, 123, 3000),
        "add_mod97_s0": ("+", 97, 0, 4000),
        "add_mod97_s1": ("+", 97, 1, 3000),
        "add_mod97_s2": ("+", 97, 2, 3000),
        "add_mod53_s42": ("+", 53, 42, 5000),
        "add_mod71_s42": ("+", 71, 42, 3500),
        "add_mod113_s42": ("+", 113, 42, 2500),
        "add_mod131_s42": ("+", 131, 42, 2500),
        "mult_mod97_s42": ("×", 97, 42, 3000),
        "sub_mod97_s42": ("−", 97, 42, 5500),
    },
)

# The last two rows are its caption; 1,740 and the p-value are §5.1's.
CROSS = Reported(
    "tab:cross",
    ("modulus", "grok", "sync", "lead", "precursor", "low", "high", "p"),
    {
        "add_mod97_s42": (97, 4000, 1500, 2500, "yes", None, None, None),
        "add_mod53_s42": (53, 5000, 2000, 3000, "yes", None, None, None),
        "add_mod113_s42": (113, 2500, 1500, 1000, "yes", None, None, None),
        "add_mod131_s42": (131, 2500, 1000, 1500, "yes", None, None, None),
        "add_mod71_s42": (71, 3500, 2000, 1500, "yes", None, None, None),
        "add_mod97_s0": (97, 4000, 1000, 3000, "yes", None, None, None),
        "add_mod97_s1": (97, 3000, 2500, 500, "yes", None, None, None),
        "add_mod97_s2": (97, 3000, 2500, 500, "yes", None, None, None),
        "add_mod97_s123": (97, 3000, 1000, 2000, "yes", None, None, None),
        "sub_mod97_s42": (97, 5500, 4500, 1000, "yes", None, None, None),
        "mult_mod97_s42": (97, 3000, 13000, -10000, "no", None, None, None),
        "mean": (None, None, None, 1722, "9/9", 1111, 2333, 0.004),
        "mean by prime": (None, None, None, 1740, None, 1240, 2400, None),
    },
)

EXLOSS = Reported(
    "tab:exloss",
    ("grok", "sync", "lead", "restricted_sync", "restricted_lead", "wins"),
    {
        "add_mod97_s42": (4000, 1500, 2500, 4000, 0, "yes"),
        "add_mod53_s42": (5000, 2000, 3000, 5000, 0, "yes"),
        "add_mod113_s42": (2500, 1500, 1000, 4000, -1500, "yes"),
        "add_mod97_s123": (3000, 1000, 2000, 3000, 0, "yes"),
        "add_mod97_s0": (4000, 1000, 3000, 4000, 0, "yes"),
        "add_mod97_s1": (3000, 2500, 500, 3000, 0, "yes"),
        "add_mod97_s2": (3000, 2500, 500, 3000, 0, "yes"),
        "add_mod71_s42": (3500, 2000, 1500, 3500, 0, "yes"),
        "add_mod131_s42": (2500, 1000, 1500, 2500, 0, "yes"),
        "mean": (None, None, 1722, None, -167, "9/9"),
    },
)

WD_INTERVENTION = Reported(
    "tab:wd_intervention",
    ("grok", "wait", "speedup", "mark"),
    {
        "1": (4000, 3000, 1, None),
        "2": (2500, 1500, 2, None),
        "3": (2000, 1000, 3, None),
        "4": (2000, 1000, 3, "†"),
        "5": (2000, 1000, 3, "†"),
        "10": (None, None, "n/a", "‡"),
    },
)

RANK = Reported(
    "tab:rank",
    ("validation_accuracy", "rank", "norm", "phase"),
    {
        "500": (0.006, 6, 76.72, "1 (formation)"),
        "1000": (0.106, 4, 51.93, "1"),
        "1500": (0.020, 3, 37.78, "1"),
        "2000": (0.174, 2, 30.56, "1"),
        "2500": (0.053, 1, 28.60, "2 (liberation)"),
        "3000": (0.275, 1, 26.67, "2"),
        "3500": (0.352, 1, 24.40, "2"),
        "4000": (0.997, 1, 22.94, "Grokking"),
        "5000": (1.000, 1, 23.94, "post-grokking"),
    },
)

KAN_ALL = Reported(
    "tab:kan_all",
    ("rank_before", "rank_after", "rank_one_share", "r2_rank_1", "kan_r2", "agreement", "mode"),
    {
        "add_mod97_s42": (6, 1, 0.94, 0.986, 0.992, 1.00, 5),
        "add_mod53_s42": (3, 1, 0.95, 0.989, 0.999, 0.88, 3),
        "add_mod113_s42": (7, 2, 0.23, 0.690, 0.920, 0.96, 9),
        "add_mod97_s123": (5, 1, 0.98, 0.994, 0.999, 1.00, 14),
        "add_mod97_s0": (6, 1, 0.89, 0.971, 0.989, 0.99, 11),
        "add_mod97_s1": (6, 1, 0.69, 0.923, 0.999, 1.00, 6),
        "add_mod97_s2": (5, 1, 0.77, 0.930, 0.939, 0.97, 39),
        "add_mod71_s42": (4, 1, 0.62, 0.918, 1.000, 1.00, 21),
        "add_mod131_s42": (5, 1, 0.96, 0.989, "not converged", "not converged", 54),
    },
)

ABLATION = Reported(
    "tab:ablation",
    ("accuracy", "drop"),
    {
        "none": (99.82, None),
        "mlp0": (87.97, 11.8),
        "mlp1": (11.82, 88.0),
        "attn0": (10.78, 89.0),
        "attn1": (5.40, 94.4),
    },
)

ARCH_ABLATION = Reported(
    "tab:arch_ablation",
    ("grok", "sync", "lead", "precursor"),
    {
        "two_layers": (4000, 2500, 1500, "yes"),
        "one_layer": (4500, 5500, -1000, "no"),
        "attention_only": (4000, 1000, 3000, "yes"),
        "mlp_only": (None, 500, "n/a", "n/a"),
    },
)

# The last two rows are its caption and §6's text.
TIMING_FIT = Reported(
    "tab:timing_fit",
    ("observed", "predicted", "error", "status", "constant", "r_squared"),
    {
        "1": (3000, 3600, 600, "stable", None, None),
        "2": (1500, 1800, 300, "stable", None, None),
        "3": (1000, 1200, 200, "stable", None, None),
        "4": (1000, 900, 100, "unstable post-grokking", None, None),
        "5": (1000, 720, 280, "unstable post-grokking", None, None),
        "10": (None, 360, None, "destabilised", None, None),
        "all": (None, None, None, None, 3600, 0.81),
        "stable": (None, None, None, None, 3000, 1.00),
    },
)

CROSSPRIME = Reported(
    "tab:crossprime",
    (
        "mean 1",
        "std 1",
        "mean 2",
        "std 2",
        "mean 3",
        "std 3",
        "mean 5",
        "std 5",
        "constant",
        "r_squared",
        "low",
        "high",
    ),
    {
        "53": (4100, 369, 2200, 190, 1540, 49, 1200, 63, 4780, 0.89, 0.49, 0.95),
        "97": (2425, 249, 1300, 187, 850, 87, 667, 125, 2727, 0.94, 0.69, 1.00),
        "131": (1680, 40, 900, 0, 600, 0, "never", None, 1760, 0.99, 0.96, 0.99),
    },
)

TRANSFER = Reported(
    "tab:transfer",
    ("grok", "sync", "lead", "irrep", "control_lead", "p"),
    {
        "0": (6900, 3100, 3800, "(4,1), d = 4", -700, None),
        "1": (3700, 2200, 1500, "(2,1,1,1), d = 4", "never", None),
        "42": (2100, 100, 2000, "(2,1,1,1), d = 4", "never", None),
        "2": (5700, 3600, 2100, "(2,1,1,1), d = 4", -2200, None),
        "7": (6200, 4000, 2200, "(3,2), d = 5", -3300, None),
        "123": (3300, 400, 2900, "(2,1,1,1), d = 4", 2900, None),
        "mean": (None, None, 2417, None, None, 0.03),
    },
)

REPORTED = {
    table.label: table
    for table in (
        CONFIGS,
        CROSS,
        EXLOSS,
        WD_INTERVENTION,
        RANK,
        KAN_ALL,
        ABLATION,
        ARCH_ABLATION,
        TIMING_FIT,
        CROSSPRIME,
        TRANSFER,
    )
}
