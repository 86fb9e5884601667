"""Claims on signals: each is met by some records, and not by others."""

from collections.abc import Callable
from functools import partial
from math import log

import pytest
from signal_runs import after, record
from signal_runs import world as world_of

from grokscope.studies import Evidence, Verdict, judge
from grokscope.studies.message import write_message
from grokscope.studies.signals import STUDY
from grokscope.studies.signals.claims import CANNOT
from grokscope.studies.signals.experiments import CELLS, family_of
from grokscope.view.charts.figure import Figure
from grokscope.view.table import Table

SEEDS = 16  # the fewest that can refute a claim
world = partial(world_of, SEEDS)
CLAIMS = {claim.name: claim for claim in STUDY.claims}
HALF = {"nanda": log(113) / 2, "S5": log(120) / 2}


def circuits(cell: str, restricted: str, excluded: str, fallen: int, risen: int, highest: int) -> Evidence:
    """A cell that groks at 4,000, whose losses with the final keys turn at these steps."""
    half = HALF[cell]

    def without(at: int) -> float:
        return 0.1 if at < risen else 9.0 if at == highest else 0.2 + half

    return world(
        **{cell: lambda seed: {"grok": 4000, restricted: after(fallen, half / 2, 2 * half), excluded: without}}
    )


def of_nanda(fallen: int = 2000, risen: int = 2000, highest: int = 3000) -> Evidence:
    return circuits("nanda", "trig@final", "excluded@final", fallen, risen, highest)


def of_s5(fallen: int = 2000, risen: int = 2000) -> Evidence:
    return circuits("S5", "hidden_restricted@final", "hidden_excluded@final", fallen, risen, 3000)


def entropies(column: str, lead: int, high: float = 0.8) -> Evidence:
    return world(one_layer=lambda seed: {"grok": 4000, column: after(4000 - lead, 0.5, high)})


def defects(lead: int, grown: float = 600.0, control: float = 40.0) -> Evidence:
    course = {"grok": 4000, "commutator_defect": after(4000 - lead, grown, 1.0)}
    still = {"commutator_defect": after(2000, control, 1.0)}
    return world(
        add97=lambda seed: course,
        mult97=lambda seed: course,
        square_sum=lambda seed: still,
        cube_sum=lambda seed: still,
    )


def gaps(lead: int, fall: float = 10.0) -> Evidence:
    course = {"grok": 4000, "attention_gap_23": after(4000 - lead, 1 / fall, 1.0)}
    return world(add97=lambda seed: course, mult97=lambda seed: course)


def cannot(column: str, given: float, not_given: float, alarms: int) -> Evidence:
    """So many alarms of the 16 runs of each cell that cannot grok."""

    def plan(seed: int) -> dict[str, object]:
        return {column: after(1000, given if seed < alarms else not_given, not_given)}

    return world(**dict.fromkeys(CANNOT, plan))


def compared(fsd: bool) -> Evidence:
    """FSD leads in all runs or in none, the validation loss in a sixth."""
    return world(
        one_layer=lambda seed: {
            "grok": 3000,
            "fsd": after(2000 if fsd else None, 0.9, 0.1),
            "validation_loss": after(2500 if seed % 6 == 0 else None, 1.0, 9.0),
        },
        shuffled_one_layer=lambda seed: {"fsd": 0.1, "validation_loss": 9.0},
    )


def early(norm: bool) -> Evidence:
    """The validation loss, or the norm too, says which seed groks sooner."""
    return world(
        one_layer=lambda seed: {
            "grok": 3000 + 100 * seed, "validation_loss": 5.0 + seed, "norm": 30.0 + seed if norm else 30.0,
        }
    )  # fmt: skip


CASES: dict[str, tuple[Callable[[], Evidence], tuple[Callable[[], Evidence], ...]]] = {
    "nanda-restricted-first": (of_nanda, (lambda: of_nanda(fallen=4500),)),
    "nanda-excluded-first": (of_nanda, (lambda: of_nanda(risen=4500, highest=5000),)),
    "nanda-formed-first": (of_nanda, (lambda: of_nanda(highest=4400),)),
    "chughtai-restricted-first": (of_s5, (lambda: of_s5(fallen=4500),)),
    "chughtai-excluded-first": (of_s5, (lambda: of_s5(risen=4500),)),
    **{
        f"{signal}-{claim}": (lambda column=column: entropies(column, 1000), others(column))
        for signal, column in (("entropy", "representation_entropy"), ("residual-entropy", "residual_entropy"))
        for claim, others in (
            ("always-first", lambda column: (lambda: entropies(column, -200), lambda: entropies(column, -9000))),
            ("lead", lambda column: (lambda: entropies(column, 2000), lambda: entropies(column, 300))),
        )
    },
    "commutator-always-first": (lambda: defects(1100), (lambda: defects(-100), lambda: defects(1100, grown=9.0))),
    "commutator-lead": (lambda: defects(1100), (lambda: defects(500), lambda: defects(1800))),
    "commutator-separates": (lambda: defects(1100), (lambda: defects(1100, control=700.0),)),
    "gap-always-first": (lambda: gaps(500), (lambda: gaps(-100), lambda: gaps(500, fall=4.0))),
    **{
        f"{signal}-no-false-alarms": (
            lambda values=values: cannot(*values, alarms=0),
            (lambda values=values: cannot(*values, alarms=8),),
        )
        for signal, values in {
            "entropy": ("representation_entropy", 0.5, 0.8),
            "residual-entropy": ("residual_entropy", 0.5, 0.8),
            "commutator": ("commutator_defect", 50.0, 2.0),
            "gap": ("attention_gap_23", 0.1, 1.0),
        }.items()
    },
    "some-signal-beats-the-loss": (lambda: compared(True), (lambda: compared(False),)),
    "early-information-suffices": (lambda: early(True), (lambda: early(False),)),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_can_be_met_and_can_fail(name: str) -> None:
    claim = CLAIMS[name]
    if claim.rule.shown is None:
        assert claim.rule.untestable
        return
    follows, others = CASES[name]
    assert judge(claim, follows()).verdict is Verdict.REPRODUCED
    for contradicts in others:
        found = judge(claim, contradicts())
        assert found.verdict is Verdict.REFUTED, found.why


def test_a_run_that_does_not_grok_is_no_lead() -> None:
    """Of six drawn runs all must lead; half of the runs of each cell do not grok, though the defect grows in them."""
    half = {"commutator_defect": after(2000, 600.0, 1.0)}
    found = world(**{name: lambda seed: half | {"grok": 4000 if seed % 2 else None} for name in ("add97", "mult97")})
    assert judge(CLAIMS["commutator-always-first"], found).verdict is not Verdict.REPRODUCED


def test_claims_about_false_alarms_name_only_runs_in_which_the_signal_has_a_threshold() -> None:
    for claim in STUDY.claims:
        if not claim.name.endswith("no-false-alarms"):
            continue
        cells = {stratum.name for stratum in claim.estimand.strata}
        assert cells <= set(CANNOT)
        if claim.name.startswith("entropy"):  # of neurons it is read in these alone
            assert cells == {"shuffled-one-layer"}
            continue
        assert ("shuffled-parity" in cells) == (not claim.name.startswith("gap"))
        assert any(family_of(name) == "S5" for name in cells) == ("entropy" not in claim.name)
        assert all(CELLS[name].kind == "cannot-grok" for name in cells)


def test_every_claim_names_its_source_and_the_papers_are_all_there() -> None:
    sources = " ".join(claim.where for claim in STUDY.claims)
    for number in ("2301.05217", "2302.03025", "2604.13123", "2602.16746", "2603.28964"):
        assert f"arXiv:{number}" in sources


def test_the_message_says_of_planted_runs_what_their_numbers_are() -> None:
    found = compared(True)
    findings = {claim.name: judge(claim, found) for claim in STUDY.claims}
    said = [row["text"] for row in write_message(STUDY.message, STUDY.claims, findings, found)]
    assert any(text.startswith("**At equal false alarms 1 of the published signals") for text in said)
    both = world(
        **{
            name: lambda seed: {"grok": 4000, "commutator_defect": after(3000, 600.0, 1.0)}
            for name in ("add97", "mult97")
        },
        **dict.fromkeys(CANNOT, lambda seed: {"commutator_defect": after(3000, 600.0, 1.0)}),
    )
    findings = {claim.name: judge(claim, both) for claim in STUDY.claims}
    rows = {row["text"]: row["topic"] for row in write_message(STUDY.message, STUDY.claims, findings, both)}
    [onset] = [text for text in rows if text.startswith("The commutator defect begins to grow before")]
    assert rows[onset] == "What is not specific"
    assert "by +1,000 [+1,000, +1,000] steps in the mean" in onset


def test_without_runs_no_claim_is_judged_and_nothing_is_shown() -> None:
    empty = world_of()
    for claim in STUDY.claims:
        assert judge(claim, empty).verdict is Verdict.NOT_TESTABLE
    for item in (*STUDY.tables, *STUDY.supplements):
        table = item.build(empty)
        assert isinstance(table, Table)
        assert not any(cell.quantity for row in table.rows for cell in row)
    for item in STUDY.figures:
        figure = item.build(empty)
        assert isinstance(figure, Figure)
        assert figure.panels == ()


def test_a_record_is_planted_with_the_columns_it_is_given() -> None:
    found = record(CELLS["add97"].run(0, "float32"), 300, last=400, trig=1.0, norm=2.0)
    assert (found.timeline.grokked, found.at(400, "trig"), found.at(400, "norm")) == (300, 1.0, 2.0)
