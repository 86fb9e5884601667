"""Table 11 comes out as reported; the claims of §7 can hold and can fail."""

import pytest
from judged import CLAIMS, finding, is_decisive, only
from paper_runs import evidence as followed
from paper_runs import record_of
from planted import EMPTY, agree, evidence

from grokscope.studies import Evidence, Verdict, judge
from grokscope.studies.synchronization.groups import SIX, TABLES
from grokscope.view.table import Table
from paper_tables import TRANSFER

MEAN = "mean, trained on 70%"


def table(found: Evidence) -> Table:
    built = TABLES[0].build(found)
    assert isinstance(built, Table)
    return built


def test_the_transfer_comes_out_as_reported() -> None:
    runs = {
        f"S5_f0.7_s{seed}": {"grok": grok, "sync": sync, "control_fsd": None if control is None else grok - control}
        for seed, (grok, sync, _, control) in TRANSFER.items()
    }
    found = table(evidence("symmetric", runs))
    names = ["Grok", "FSD_gen sync", "Lead", "Fourier control lead, 0.8"]
    agree(found, [str(seed) for seed in TRANSFER], names)
    mean = found.cell(MEAN, "Lead")
    assert round(float(mean.ours or 0)) == mean.paper == 2417  # type: ignore[arg-type]
    assert found.cell(MEAN, "Sign-test p").ours == 2**-5
    irreps = {"(4,1), d = 4", "(2,1,1,1), d = 4", "(3,2), d = 5", "(3,1,1), d = 6", "(2,2,1), d = 5"}
    assert found.cell("42", "Dominant irrep").ours in irreps
    assert str(found.cell(MEAN, "Fourier control lead, 0.8").ours).startswith("below")
    for name, column in (
        ("s5-leads", "Positive"),
        ("s5-mean-lead", "Lead"),
        ("s5-control", "Fourier control lead, 0.8"),
    ):
        assert CLAIMS[name].quantity.key == found.cell(MEAN, column).quantity


def test_each_train_fraction_has_its_own_mean() -> None:
    runs = {
        f"S5_f{fraction}_s{seed}": {"grok": grok, "sync": 1000}
        for fraction, grok in ((0.7, 2000), (0.5, 5000))
        for seed in (0, 1, 42, 2, 7, 123)
    }
    found = table(evidence("symmetric", runs))
    assert [found.cell(f"mean, trained on {share}", "Lead").ours for share in ("70%", "50%")] == [1000, 4000]
    half = table(evidence("symmetric", {"S5_f0.5_s42": {"grok": 5000, "sync": 1000}}))
    assert half.cell(MEAN, "Lead").ours is None
    assert half.cell("42, trained on 50%", "Lead").ours == 4000


def test_without_runs_every_cell_is_empty_and_a_note_says_so() -> None:
    found = table(EMPTY)
    assert found.notes[-1].startswith("Not trained, so left empty: S5_f0.7_s0")
    assert all(cell.ours is None for row in found.rows for cell in row[1:])


@pytest.mark.parametrize("name", ["s5-leads", "s5-mean-lead", "s5-irreps", "s5-control", "s5-memorises", "s5-groks"])
def test_claims_hold_on_runs_that_follow_the_paper_and_fail_on_others(name: str) -> None:
    assert is_decisive(name)
    assert finding(name).all_seeds.rstrip(")").endswith("at three train fractions")
    assert judge(CLAIMS[name], EMPTY).verdict is Verdict.TOO_FEW


def test_the_plateau_is_between_memorisation_and_grokking() -> None:
    symmetric = followed(True).records["symmetric"]
    orders = {Verdict.REPRODUCED: 600, Verdict.NOT: 3000}
    for verdict, memorized in orders.items():
        runs = {name: record_of(symmetric[name].spec, 4000, 2000, memorized=memorized) for name in SIX.names}
        found = judge(CLAIMS["s5-plateau"], only("symmetric", **runs))
        assert (found.verdict, found.n) == (verdict, 6)
    assert finding("s5-plateau").value == "4 of 6", "two of the reported crossings come before step 600"


def test_runs_that_never_memorise_or_grok_are_not_reproduced() -> None:
    symmetric = followed(True).records["symmetric"]
    runs = {name: record_of(symmetric[name].spec, None, None, memorized=None) for name in SIX.names}
    found = {name: judge(CLAIMS[name], only("symmetric", **runs)) for name in CLAIMS if name.startswith("s5-")}
    values = {
        "s5-leads": "none grokked",
        "s5-mean-lead": "none grokked",
        "s5-irreps": "none synchronised",
        "s5-memorises": "0 of 6 memorise",
        "s5-groks": "none grokked",
    }
    for name, value in values.items():
        assert (found[name].value, found[name].verdict) == (value, Verdict.NOT)
    assert found["s5-control"].verdict is Verdict.TOO_FEW


def test_numbers_of_runs_are_of_those_that_have_the_number() -> None:
    symmetric = dict(followed(True).records["symmetric"])
    symmetric["S5_f0.7_s7"] = record_of(symmetric["S5_f0.7_s7"].spec, None, 500)
    found = judge(CLAIMS["s5-mean-lead"], only("symmetric", **symmetric))
    grokked = sum(record.timeline.grokked is not None for record in symmetric.values())
    assert found.n == 5
    assert f"over {grokked} runs at three train fractions" in found.all_seeds


def test_groups_that_never_grok_and_crossings_without_grokking_are_named() -> None:
    assert finding("other-groups").verdict is Verdict.REPRODUCED
    assert finding("other-groups", False).verdict is Verdict.NOT
    runs = dict(followed(True).records["open_questions"])
    for name, record in list(runs.items()):
        if name.startswith("Aff11"):
            runs[name] = record_of(record.spec, None, 500)
    found = judge(CLAIMS["other-groups"], only("open_questions", **runs))
    count = sum(name.startswith("Aff11") for name in runs)
    assert "Aff11: none groks" in found.value
    assert found.why.endswith(f"it also crosses in {count} of {count} that do not grok.")
    assert judge(CLAIMS["other-groups"], EMPTY).verdict is Verdict.TOO_FEW
