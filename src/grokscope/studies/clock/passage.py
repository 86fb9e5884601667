"""Is the delay the time that the norm takes to fall? arXiv 2605.18845 and 2603.13331.

Reported in 2605.18845, of attention models: T − T_mem = ln(V_mem/V*)/(2κηλ), κ and V* from one cell, is wrong by 17.7 %
on average on 26 runs of other cells (18.0 % with an MLP among them); with the norm frozen at memorisation, or decay
dropped there, 0 of 3 grok in 30,000 steps. In 2603.13331: the delay goes as 1/λ (R² = 0.97), as 1/η (R² = 0.92) and
with the logarithm of the norm ratio (r = 0.91 over primes), of attention with LayerNorms after its branches and a final
one. Which model had its norm frozen is not stated in what is public; here it is attention with LayerNorms in the block
and at the end, and the MLP, for 8,000 steps. Their angular threshold is not tested.
"""

from collections.abc import Mapping
from math import log, nan
from typing import Any

import numpy as np

from grokscope.studies import Claim, Estimand, Records, Rule, Selection, Stratum, rule
from grokscope.studies.clock.cells import MODELS
from grokscope.studies.clock.doses import compare
from grokscope.studies.clock.experiments import RATES
from grokscope.studies.clock.laws import free_run_of, rate_cells, score_laws
from grokscope.studies.clock.reading import ALL, clamp_estimand, slope_and_fit
from grokscope.studies.reduction import mean, median, rank_correlation

__all__ = ["CLAIMS", "derive_spread"]

FIRST, SECOND = "arXiv 2605.18845", "arXiv 2603.13331"
LAWS_SHOWN, STOPS_SHOWN = "tab-laws", "tab-controls"


def read_free(runs: Records) -> Mapping[str, float]:
    """Of one run: the delay since memorisation and T, infinite without grokking; and ln(V_mem/V_post), λ·T and ηλ·T."""
    (record,) = runs.values()
    run, training = free_run_of(record), record.spec.training
    grokked = record.timeline.grokked
    step = float("inf") if grokked is None else float(grokked)
    decays = training.known_weight_decay * step
    found = {"delay": nan, "log ratio": nan, "λt": decays, "ηλt": training.learning_rate * decays}
    if run is None:
        return found
    delay = float(run.delay) if run.groks else float("inf")
    return found | {"delay": delay, "log ratio": 2 * log(run.norm / run.last_norm)}


def _cells(model: str, *cells: str) -> tuple[Stratum, ...]:
    return tuple(Stratum(cell, Selection(ALL, configuration=f"{model}-{cell}")) for cell in cells)


def _single(record: Any) -> Mapping[str, float]:
    return read_free({"": record})


def _varied(model: str, what: str) -> dict[str, float]:
    """The cells in which λ alone, or η alone, differs from the reference, with its value."""
    place = ("λ", "η").index(what)
    own = {"free": (1.0, 1e-3)} | dict(zip(rate_cells(model), RATES[model], strict=True))
    return {cell: pair[place] for cell, pair in own.items() if pair[1 - place] == (1.0, 1e-3)[1 - place]}


def _exponent(model: str, what: str) -> Estimand:
    """The exponent of the median delay in λ or η, and how straight it is."""
    values = _varied(model, what)

    def derive(parts: Mapping[str, Any]) -> Mapping[str, Any]:
        delays = np.stack(np.broadcast_arrays(*(parts[f"delay {cell}"] for cell in values)))
        x = np.array([log(value) for value in values.values()]).reshape(-1, *(1,) * (delays.ndim - 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope, fit = slope_and_fit(np.broadcast_to(x, delays.shape), np.log(delays))
        return {"exponent": slope, "R²": fit}

    parts = {f"delay {cell}": median("delay", cell) for cell in values}
    text, effect = "exponent {exponent:.2f}, R² = {R²:.2f}", (("exponent", "R²"), ".2f")
    return Estimand(
        f"exponent of the delay in {what}", _cells(model, *values), _single, parts, text, effect, derive=derive
    )


def derive_spread(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The largest over the smallest median."""
    values = np.stack(np.broadcast_arrays(*(value for name, value in parts.items() if name.startswith("median"))))
    return {"largest over smallest": values.max(axis=0) / values.min(axis=0)}


def _constancy(model: str, column: str, cells: tuple[str, ...]) -> Estimand:
    """How much the median of a product with time differs over cells."""
    parts = {f"median {cell}": median(column, cell) for cell in cells}
    text, effect = "{largest over smallest:.2f}", ("largest over smallest", ".2f")
    return Estimand(
        f"{column} at grokking over cells", _cells(model, *cells), _single, parts, text, effect, derive=derive_spread
    )


def _share(model: str, cell: str, drawn: int | None) -> Estimand:
    return clamp_estimand(
        "share that groks",
        model,
        (cell,),
        {"share": mean(f"groks {cell}")},
        "{share:.0%}",
        ("share", ".0%"),
        drawn=drawn,
    )


def _stopped(name: str, what: str, cell: str, model: str) -> Claim:
    is_theirs = model == "both"
    return Claim(
        f"{name}-{model}",
        f"{what} at memorisation, a run does not grok: {MODELS[model].title}.",
        f"{FIRST}, §6.5" + ("" if is_theirs else "; asked here of this model"),
        "0 of 3 in 30,000 steps",
        _share(model, cell, 3 if is_theirs else None),
        (Rule if is_theirs else Rule.of_many)(rule.at_most(0.1, "share")),
        STOPS_SHOWN,
        "paper" if is_theirs else "new",
    )


WORDS = {"both": "attention with LayerNorms", "mlp": "the MLP"}
CLAIMS = (
    *(_stopped("frozen", "With its norm frozen", "frozen", model) for model in ("both", "mlp")),
    *(_stopped("nodecay", "Without decay", "nodecay", model) for model in ("both", "mlp")),
    Claim(
        "norm-without-decay",
        "Without decay, but with the norm led along its parent's, the MLP groks when the parent does: decay acts "
        "through the norm alone.",
        "asked here",
        "—",
        compare(
            "grok step at the parent's norm without decay over that of the parent",
            "mlp",
            "nodecay-matched",
            "free",
            (0.8, 1.25),
            None,
        ),
        Rule.of_many(rule.between(0.8, 1.25, "ratio")),
        STOPS_SHOWN,
        "new",
    ),
    *(
        Claim(
            f"first-passage-{model}",
            f"First passage of the norm, calibrated in one cell, predicts grokking in the others: {words}.",
            f"{FIRST}, §5.3",
            "MAPE 17.7 % on 26 runs; 18.0 % with an MLP",
            score_laws(model),
            Rule(rule.at_most(0.25, "first passage")),
            LAWS_SHOWN,
        )
        for model, words in WORDS.items()
    ),
    Claim(
        "inverse-decay",
        "The MLP's delay goes as 1/λ.",
        f"{SECOND}, abstract",
        "R² = 0.97",
        _exponent("mlp", "λ"),
        Rule.of_many(rule.all_of(rule.between(-1.25, -0.75, "exponent"), rule.at_least(0.9, "R²"))),
        LAWS_SHOWN,
    ),
    Claim(
        "inverse-rate",
        "The MLP's delay goes as 1/η.",
        f"{SECOND}, abstract",
        "R² = 0.92",
        _exponent("mlp", "η"),
        Rule.of_many(rule.all_of(rule.between(-1.25, -0.75, "exponent"), rule.at_least(0.9, "R²"))),
        LAWS_SHOWN,
    ),
    Claim(
        "norm-ratio",
        "Between seeds of one cell, too, the delay grows with the logarithm of the norm ratio.",
        f"{SECOND}, abstract, over primes; asked here within a cell",
        "r = 0.91 over primes",
        Estimand(
            "rank correlation of the delay with ln(V_mem/V_post)",
            _cells("mlp", "free"),
            _single,
            {"correlation": rank_correlation("delay", "log ratio")},
            "{correlation:.2f}",
            ("correlation", ".2f"),
        ),
        Rule.of_many(rule.at_least(0.3, "correlation")),
        LAWS_SHOWN,
        "new",
    ),
    *(
        Claim(
            f"passage-over-clock-{model}",
            f"The norm at memorisation tells when: first passage is less wrong than T_mem + C/(ηλ): {words}.",
            "asked here",
            "—",
            score_laws(model),
            Rule(rule.above(0, "least gain")),
            LAWS_SHOWN,
            "new",
        )
        for model, words in WORDS.items()
    ),
    Claim(
        "clock-is-decay-and-rate",
        "The MLP groks at one ηλ·t: medians over λ from 0.5 to 4 and η from 0.0005 to 0.004 differ by less than 25 %.",
        "asked here",
        "—",
        _constancy("mlp", "ηλt", ("free", *rate_cells("mlp"))),
        Rule.of_many(rule.at_most(1.25, "largest over smallest")),
        LAWS_SHOWN,
        "new",
    ),
    Claim(
        "clock-is-decay",
        "The MLP groks at one λ·t, whatever η is: medians over η from 0.0005 to 0.004 differ by less than 25 %.",
        "asked here",
        "—",
        _constancy("mlp", "λt", tuple(_varied("mlp", "η"))),
        Rule.of_many(rule.at_most(1.25, "largest over smallest")),
        LAWS_SHOWN,
        "new",
    ),
)
