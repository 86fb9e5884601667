"""Every rule of the clock study can hold and can fail, on planted runs; numbers are those that were planted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil, exp, inf, log, nan

import pytest

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Evidence, Finding, Verdict, judge, resampling
from grokscope.studies.clock import STUDY, laws
from grokscope.studies.clock.cells import MODELS
from grokscope.studies.clock.doses import derive_ratio
from grokscope.studies.clock.experiments import EXPERIMENTS
from grokscope.studies.clock.levels import norm_at_grokking
from grokscope.studies.message import write_message
from grokscope.view.charts.figure import Figure
from grokscope.view.table import Table

CLAIMS = {claim.name: claim for claim in STUDY.claims}
NONE = Finding(Verdict.REPRODUCED, "")
SEEDS = 16
RUNS = {name: experiment(SEEDS, "float32") for name, experiment in EXPERIMENTS.items()}


@pytest.fixture(autouse=True)
def few_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in {"DESIGNS": 200, "WORLDS": 20, "WITHIN": (10, 20), "EFFECTS": 20}.items():
        monkeypatch.setattr(resampling, name, number)
    monkeypatch.setattr(laws, "BOOTSTRAPS", 20)


@dataclass(frozen=True)
class Planted:
    """What is planted into a run."""

    grok: float | None = 4000.0
    norm: float = 50.0
    """At grokking."""
    memorized: int = 300
    norm_at_memorized: float = 60.0
    logits: float = 30.0


World = Callable[[str, str, int, RunSpec], Planted]


def record(spec: RunSpec, planted: Planted) -> RunRecord:
    """A run evaluated at times whose norm falls geometrically from memorisation to grokking, and stays there."""
    first = spec.fork.step if spec.fork else 0
    grok = None if planted.grok is None or planted.grok > spec.training.steps else planted.grok
    last = spec.training.steps if grok is None else min(spec.training.steps, 50 * ceil(grok / 50) + 500)
    events = {planted.memorized, *(() if grok is None else (50 * ceil(grok / 50),)), last}
    steps = sorted({*range(first, last + 1, 250), *(step for step in events if first <= step <= last)})
    reached = [s for s in steps if grok is not None and s >= grok]
    end = reached[0] if reached else last

    def norm(step: int) -> float:
        share = min(1.0, max(0.0, (step - planted.memorized) / max(1, end - planted.memorized)))
        return planted.norm_at_memorized * (planted.norm / planted.norm_at_memorized) ** share

    log = {
        "step": steps,
        "train_accuracy": [1.0 if step >= planted.memorized else 0.1 for step in steps],
        "validation_accuracy": [1.0 if step in reached else 0.1 for step in steps],
        "norm": [norm(step) for step in steps],
    }
    measured = {"step": steps, "logit_scale": [planted.logits] * len(steps)}
    return RunRecord(spec, RunOutcome("grokked"), log, measured)


def evidence(world: World) -> Evidence:
    """All runs of the study in a world."""
    found: dict[str, dict[str, RunRecord]] = {}
    for experiment, runs in RUNS.items():
        found[experiment] = {}
        for name, spec in runs.items():
            what, _, seed = name.rpartition("_s")
            model, _, cell = what.partition("-")
            found[experiment][name] = record(spec, world(model, cell, int(seed), spec))
    return Evidence(found)


def rho_of(cell: str) -> float | None:
    words = cell.removeprefix("rho").removeprefix("random").partition("-")[0]
    return float(words) if cell.startswith(("rho", "random")) else None


BASE = 3400.0  # steps to grok at ρ = 1, λ = 1 and η = 0.001
ALPHA = {"mlp": 7.6, "none": 15.0, "block": 12.0, "final": 0.3, "both": 0.2}
BY_TEMPERATURE = {"mlp": 1.2, "none": 0.8, "both": 0.5}
NORM = {model: norm_at_grokking(model, 0) for model in ALPHA}  # as levels are assumed


def as_reported(model: str, cell: str, seed: int, spec: RunSpec) -> Planted:
    """A world in which nearly every claim holds: delays are exponential in ρ, and norms fall as ηλ says."""
    near, norm, base, training = 1 + 0.01 * ((seed % 5) - 2), NORM[model], BASE, spec.training
    rho = rho_of(cell)
    if rho is not None:
        # ln T and the scale of the logits are one number, in which ρ and the temperature act alike.
        pace = ALPHA[model] * (rho - 1) - BY_TEMPERATURE.get(model, 0) * (spec.architecture.temperature - 1)
        return Planted(base * exp(pace) * near, norm * rho, logits=20 * (1 + pace / 4))
    if cell in ("frozen", "nodecay"):
        return Planted(None, norm * 1.2)
    if cell.startswith("decay") or cell == "free":
        pace = training.learning_rate * training.known_weight_decay / 1e-3
        begins = norm * 1.2 * near
        grok = 300 + (base - 300) * log(begins / norm) / log(1.2) / pace
        return Planted(grok, norm, norm_at_memorized=begins)
    return Planted(base, norm)


def but(**changes: Callable[[Planted, str, str, int], Planted]) -> World:
    """The reported world, of which one thing is otherwise."""

    def world(model: str, cell: str, seed: int, spec: RunSpec) -> Planted:
        found = as_reported(model, cell, seed, spec)
        for change in changes.values():
            found = change(found, model, cell, seed)
        return found

    return world


def alike(planted: Planted, model: str, cell: str, seed: int) -> Planted:
    """All cells grok at one step: no dependence on norm, temperature, λ or η, and nothing stops a run."""
    return replace(planted, grok=2000.0)


def steep(planted: Planted, model: str, cell: str, seed: int) -> Planted:
    """The final LayerNorm changes nothing, free norms differ, and controls are late."""
    norm = planted.norm * (1 + 0.2 * ((seed % 4) - 1.5))
    rho = rho_of(cell)
    late = {"matched": 3.0, "nodecay-matched": 3.0}.get(cell, 1.0)
    if rho is not None:
        late = exp(14 * (rho - 0.9)) if model in ("both", "final") else 1.0
        late *= 20.0 if model == "mlp" and cell == "rho1.15" else 1.0
        late *= 3.0 if model == "mlp" and rho == 1.0 else 1.0
    return replace(planted, norm=norm, grok=None if planted.grok is None else planted.grok * late)


def unrelated(planted: Planted, model: str, cell: str, seed: int) -> Planted:
    """The scale of the logits says nothing, and temperature changes nothing."""
    rho = rho_of(cell)
    if rho is None:
        return planted
    return replace(planted, grok=BASE * exp(5 * (rho - 1)), logits=20 + 5 * ((37 * len(cell) + round(40 * rho)) % 7))


def without_ratio(planted: Planted, model: str, cell: str, seed: int) -> Planted:
    """The norm at memorisation says the contrary of the delay."""
    if cell != "free":
        return planted
    return replace(planted, norm_at_memorized=planted.norm * (1.4 - 0.02 * (seed % 5)))


def on_clock(has_rate: bool) -> Callable[[Planted, str, str, int], Planted]:
    """The clock is λ·t, or ηλ·t, from the first step."""

    def change(planted: Planted, model: str, cell: str, seed: int) -> Planted:
        if not cell.startswith("decay") and cell != "free":
            return planted
        decay, rate = (1.0, 1e-3) if cell == "free" else map(float, cell.removeprefix("decay").split("-rate"))
        return replace(planted, grok=2000 / decay / (rate / 1e-3 if has_rate else 1), memorized=100)

    return change


REPORTED = evidence(as_reported)
ALIKE, STEEP, UNRELATED = (evidence(but(change=one)) for one in (alike, steep, unrelated))
CONTRARY = evidence(but(change=without_ratio))
BY_DECAY, BY_BOTH = (evidence(but(change=on_clock(has_rate))) for has_rate in (False, True))
FAILS: Mapping[str, Evidence] = {
    "norm-concentrated": STEEP,
    "clamp-at-one": STEEP,
    "clamp-delays": STEEP,
    "norm-removes": STEEP,
    "final-norm-suffices": STEEP,
    "matched-norm": STEEP,
    "norm-without-decay": STEEP,
    "random-direction": STEEP,
    "logits-mediate": UNRELATED,
    "logits-collapse": UNRELATED,
    "norm-ratio": CONTRARY,
    "clock-is-decay-and-rate": BY_DECAY,
}
HOLDS: Mapping[str, Evidence] = {"clock-is-decay": BY_DECAY, "clock-is-decay-and-rate": BY_BOTH}


@pytest.mark.parametrize("name", CLAIMS)
def test_every_rule_can_hold_and_can_fail(name: str) -> None:
    follows = HOLDS.get(name, REPORTED)
    against = REPORTED if name == "clock-is-decay" else FAILS.get(name, ALIKE)
    shown, other = judge(CLAIMS[name], follows), judge(CLAIMS[name], against)
    assert shown.verdict is Verdict.REPRODUCED, (shown.why, shown.effect_text)
    assert other.verdict in (Verdict.UNLIKELY, Verdict.REFUTED), (other.why, other.effect_text)


@pytest.mark.parametrize("name", CLAIMS)
def test_without_runs_or_forks_no_claim_about_them_is_judged(name: str) -> None:
    assert judge(CLAIMS[name], Evidence({name: {} for name in EXPERIMENTS})).verdict is Verdict.NOT_TESTABLE
    parents = Evidence({one: {} for one in EXPERIMENTS} | {"parents": REPORTED.records["parents"]})
    alone = judge(CLAIMS[name], parents)
    if name not in ("norm-concentrated", "norm-ratio"):
        assert alone.verdict is Verdict.NOT_TESTABLE, alone.why


def test_exponents_are_those_that_were_planted() -> None:
    for name, planted in (("exponential-mlp", ALPHA["mlp"]), ("exponential-attention", ALPHA["none"])):
        found = judge(CLAIMS[name], REPORTED).effects
        assert found["α"].value == pytest.approx(planted, rel=0.05)
        assert found["R²"].value > 0.99


def test_tables_figures_and_message_are_made_of_the_runs_that_are_there() -> None:
    for found, is_empty in ((REPORTED, False), (Evidence({name: {} for name in EXPERIMENTS}), True)):
        for item in STUDY.tables:
            table = item.build(found)
            assert isinstance(table, Table)
            assert (len(table.rows) == 0) == is_empty, item.name
        for item in STUDY.figures:
            figure = item.build(found)
            assert isinstance(figure, Figure)
            assert (len(figure.panels) == 0) == is_empty
    said = write_message(STUDY.message, STUDY.claims, dict.fromkeys(CLAIMS, NONE), REPORTED)
    assert len([row for row in said if row["topic"] != "How sure this is"]) == len(STUDY.message)
    text = " ".join(str(row["text"]) for row in said)
    assert "A final LayerNorm, and no other, takes away" in text


# How steep the delay is in ρ, by model; the sentence that a paper would print of each outcome.
OUTCOMES = {
    "A final LayerNorm, and no other, takes away": (15, 12, 0.3, 0.2),
    "Any LayerNorm takes away": (15, 0.5, 0.3, 0.2),
    "It is the LayerNorms of the block that take away": (15, 0.5, 12, 0.2),
    "Only all LayerNorms together take away": (15, 12, 12, 0.2),
    "A final LayerNorm does not take away": (15, 12, 12, 12),
    "Even without LayerNorm a raised norm hardly delays": (0.2, 0.2, 0.2, 0.2),
    "is a matter of degree": (15, 12, 4, 0.2),  # exp(4 · 0.25) = 2.7, between the two bounds
}


@pytest.mark.parametrize("said", OUTCOMES)
def test_every_outcome_of_the_layer_norms_has_its_sentence_and_its_picture(said: str) -> None:
    slopes = dict(zip(("none", "block", "final", "both"), OUTCOMES[said], strict=True))

    def world(model: str, cell: str, seed: int, spec: RunSpec) -> Planted:
        found, rho = as_reported(model, cell, seed, spec), rho_of(cell)
        return found if rho is None or model == "mlp" else replace(found, grok=1500 * exp(slopes[model] * (rho - 0.9)))

    found = evidence(world)
    texts = [
        str(row["text"])
        for row in write_message(STUDY.message, STUDY.claims, dict.fromkeys(CLAIMS, NONE), found)
        if row["headline"]
    ]
    [text] = [text for text in texts if "LayerNorm" in text and "MLP" not in text]
    assert said in text
    assert "never" not in text
    assert "n = 16 of each" in text
    figure = next(item for item in STUDY.figures if item.name == "fig-doses").build(found)
    assert isinstance(figure, Figure)
    assert len(figure.panels) == len(MODELS)
    assert len({panel.y_range for panel in figure.panels}) == 1, "or what is steep would look like what is flat"
    slow = {panel.title for panel in figure.panels if panel.series[0].texts[-2].startswith("> ")}
    assert (MODELS["none"].title in slow) == (slopes["none"] > 10)


@pytest.mark.parametrize(
    ("late", "early", "limits", "ratio"),
    [
        ((8000.0, 8000.0), (2000.0, 2000.0), (4, 4), 4.0),
        ((inf, 9000.0), (2000.0, 2000.0), (4, 4), 4.5),  # at least so many times
        ((inf, 6000.0), (2000.0, 2000.0), (4, 4), nan),  # 3 times at least: nobody knows
        ((2000.0, 2000.0), (inf, 9000.0), (0.5, 2), 2 / 9),  # at most
        ((inf, 6000.0), (inf, 6000.0), (2, 2), nan),
    ],
)
def test_a_ratio_of_censored_cells_is_known_where_its_bound_decides(
    late: tuple[float, float], early: tuple[float, float], limits: tuple[float, float], ratio: float
) -> None:
    parts = {"step a": late[0], "seen step a": late[1], "step b": early[0], "seen step b": early[1]}
    found = derive_ratio("a", "b", "step", limits)(parts)["ratio"]
    assert float(found) == pytest.approx(ratio, nan_ok=True)


def test_where_cells_are_censored_nothing_is_refuted() -> None:
    """Without medians of three doses there is no exponent, and without any of two cells no ratio."""

    def late(planted: Planted, model: str, cell: str, seed: int) -> Planted:
        return planted if cell == "free" else replace(planted, grok=None)

    found = evidence(but(change=late))
    for name in ("exponential-mlp", "exponential-attention", "norm-returns", "norm-removes", "logits-mediate"):
        assert judge(CLAIMS[name], found).verdict is Verdict.NOT_TESTABLE, name
