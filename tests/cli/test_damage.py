"""Each damage of a folder is shown, found by `doctor`, or harmless, and docs/damage.md says what happens."""

from collections.abc import Iterator

import pytest
from damage_cases import CASES, ENDED, OTHER, OTHERS, QUICK, STATES, WAITING, Bench, Case, Seen, workplace

from grokscope.runs import run_name
from scripts import DOCS, module_at

PAGE = module_at(DOCS / "make_damage.py")
HIDDEN = ("\x1b", "\0", "Traceback")  # what no command prints


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with workplace():
        yield Bench(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module")
def page() -> dict[tuple[str, str, str], dict[str, str]]:
    return PAGE.read_page()


def row_in(page: dict[tuple[str, str, str], dict[str, str]], case: Case) -> dict[str, str]:
    return page[STATES[case.who], case.file, case.kind]


def check(case: Case, words: dict[str, str], seen: dict[str, Seen], row: dict[str, str]) -> None:
    assert words == {name: row[name] for name in words}, "docs/damage.md is not current: python docs/make_damage.py"
    for name, one in seen.items():
        assert not [text for text in HIDDEN if text in one.text], f"{name} printed {one.text!r}"
        assert words[name] != "rejected" or one.error.count("\n") == 1, f"{name} did not say it in one sentence"
        is_for_all = name in ("list", "show", "Python", "serve")
        for spec in {ENDED, OTHER, WAITING} - {case.who} if is_for_all else ():
            hidden = f"{name} hides {run_name(spec)}"
            assert run_name(spec).partition("-")[0] in one.text, hidden


@pytest.mark.parametrize("name", CASES)
def test_a_damage_is_shown_or_found_or_harmless(
    name: str, bench: Bench, page: dict[tuple[str, str, str], dict[str, str]]
) -> None:
    case = CASES[name]
    words, seen = bench.ask(case, QUICK)
    check(case, words, seen, row_in(page, case))
    is_named = words["doctor"] == "found" or "shown" in words.values()
    assert is_named != bool(case.harmless) or (is_named and "shown" not in words.values()), case.harmless


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_damage_disturbs_no_other_command_and_is_repaired(
    name: str, bench: Bench, page: dict[tuple[str, str, str], dict[str, str]]
) -> None:
    for module in ("jinja2", "duckdb", "starlette"):
        pytest.importorskip(module)
    case, row = CASES[name], row_in(page, CASES[name])
    check(case, *bench.ask(case, OTHERS), row)
    mended = bench.mend(case)
    assert mended == {word: row[word] for word in mended}, "docs/damage.md is not current"
    assert mended["then"] == ("the others the same" if case.rest else "same bytes")


def test_the_page_has_a_row_for_every_damage_and_no_other(page: dict[tuple[str, str, str], dict[str, str]]) -> None:
    assert len(CASES) >= 150
    assert list(page) == [(STATES[case.who], case.file, case.kind) for case in CASES.values()]
    for case in CASES.values():
        assert row_in(page, case)["why"] == "; ".join(filter(None, [case.harmless, case.rest]))
