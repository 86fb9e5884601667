import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import grokscope
from grokscope import specs
from grokscope.law.forms import FORMS
from grokscope.measures.catalogue import MEASURES
from grokscope.studies.synchronization import STUDY
from paper_tables import ARCH_ABLATION, CROSS, CROSSPRIME, RANK, TIMING_FIT, TRANSFER

ROOT = Path(__file__).parents[1]
MAP = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
NOTATION = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
AUDIT = (ROOT / "docs" / "paper-audit.md").read_text(encoding="utf-8")
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
MEASURES_PAGE = ROOT / "docs" / "measures.md"
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("*/*.md")), *sorted(ROOT.glob("*.md"))]
MODULES = [m.name for m in pkgutil.walk_packages(grokscope.__path__, "grokscope.") if not m.name.endswith("__main__")]

# Every label of the paper that has a number, and the number LaTeX gives it.
LABELS = {
    "eq:fourier": "Eq. 1",
    "eq:timing": "Eq. 3",
    "eq:groupft": "Eq. 4",
    "alg:fsd": "Algorithm 1",
    "tab:configs": "Table 1",
    "tab:cross": "Table 2",
    "tab:exloss": "Table 3",
    "tab:wd_intervention": "Table 4",
    "tab:rank": "Table 5",
    "tab:kan_all": "Table 6",
    "tab:ablation": "Table 7",
    "tab:arch_ablation": "Table 8",
    "tab:timing_fit": "Table 9",
    "tab:crossprime": "Table 10",
    "tab:transfer": "Table 11",
    "fig:fsd_exloss": "Figure 1",
    "fig:two_phase": "Figure 2",
    "fig:wd_intervention": "Figure 3",
    "fig:memorisation": "Figure 4",
    "fig:arch_ablation": "Figure 5",
    "fig:crossprime": "Figure 6",
    "fig:normthresh": "Figure 7",
    "fig:accelerator": "Figure 8",
    "fig:transfer": "Figure 9",
}
# What the paper defines without a label.
UNLABELLED = (
    "§3 Setup, input",
    "§3 Setup, split",
    "§3 Setup, training",
    "Appendix B, architecture",
    "§2, key-logit term",
    "Eq. 2",
    "Definition 1, Fourier rank",
    "Definition 1, spectral power",
    "Definition 2, participation",
    "Definition 2, FSD",
    "Definition 2, top-k extension",
    "§4, permutation test",
    "§4, FourierKAN",
    "§4, zero ablation",
    "§4, generalisation gap",
    "§5.2, restricted-logit loss",
    "§5.4, rank-1 share",
    "§5.6, subtraction",
    "§6, weight scaling",
    "§6, decay law",
    "§6, C estimator",
    "§7, answer-conditioned activation",
    "§7, FSD_gen",
    "§7, pre-registered rule",
)
Row = dict[str, str]


def tables(text: str) -> list[list[Row]]:
    found: list[list[Row]] = []
    header: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not header:
            header = cells
            found.append([])
        elif not set(line) <= set("|-: "):
            assert len(cells) == len(header), f"{line} has {len(cells)} cells, not {len(header)}"
            found[-1].append(dict(zip(header, cells, strict=True)))
    return found


def section(text: str, number: int) -> str:
    return re.split(r"^## ", text, flags=re.MULTILINE)[number]


def code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def resolve(name: str) -> None:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            found: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise  # the module exists and something that it imports does not
            continue
        for part in parts[length:]:
            # a dataclass's field without a default is no attribute of the class
            found = None if part in getattr(found, "__dataclass_fields__", ()) else getattr(found, part)
        return
    raise ModuleNotFoundError(name)


def function_complaint(name: str) -> str | None:
    if not name.startswith("grokscope."):
        return f"{name} is not a name in grokscope"
    try:
        resolve(name)
    except (ModuleNotFoundError, AttributeError) as error:
        return f"{name} does not exist: {error}"
    return None


def address_complaint(node: str) -> str | None:
    path, *names = node.split("::")
    if not names or not path.startswith("tests/"):
        return f"{node} is not a test's address"
    if not (ROOT / path).is_file():
        return f"{path} does not exist"
    name = names[-1].split("[")[0]
    defined = re.search(rf"^\s*def {re.escape(name)}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    return None if defined else f"{path} has no {name}"


def complaints(row: Row) -> list[str]:
    found: list[str | None] = []
    for column, complaint in (("function", function_complaint), ("test", address_complaint)):
        if row[column].strip("`*") == "open":
            continue
        names = code(row[column])
        found += [complaint(name) for name in names] or [f"{row['paper']}: {column} is neither open nor code"]
    return [text for text in found if text is not None]


def map_rows() -> list[Row]:
    return [row for table in tables(MAP) for row in table]


def option_complaint(option: str) -> str | None:
    name, equals, literal = option.partition(" = ")
    owner, _, field_name = name.partition(".")
    spec = getattr(specs, owner, None)
    if not dataclasses.is_dataclass(spec):
        return f"grokscope.specs has no {owner}"
    field = {field.name: field for field in dataclasses.fields(spec)}.get(field_name)
    if field is None:
        return f"{owner} has no field {field_name}"
    if not equals:
        return None
    written = ast.literal_eval(literal)
    same = type(written) is type(field.default) and written == field.default and repr(written) == literal
    return None if same else f"{name} is {field.default!r} by default, not {literal}"


def spec_fields(text: str) -> list[str]:
    return [span for span in code(text) if span.partition(".")[0] in specs.__all__]


def bullets(text: str) -> list[str]:
    return [" ".join(bullet.split()) for bullet in re.findall(r"^- (.+(?:\n  .+)*)", text, re.MULTILINE)]


@pytest.mark.parametrize("row", map_rows(), ids=lambda row: row["paper"])
def test_map_names_what_exists(row: Row) -> None:
    assert list(row) == ["paper", "what", "function", "test"]
    assert row["what"]
    assert complaints(row) == []


@pytest.mark.parametrize("label", LABELS)
def test_map_has_every_label_once_with_its_number(label: str) -> None:
    assert [row["paper"] for row in map_rows() if f"`{label}`" in row["paper"]] == [f"{LABELS[label]} (`{label}`)"]


def test_map_has_every_table_and_figure_of_the_study_with_its_builder() -> None:
    items = [*STUDY.tables, *STUDY.figures]
    rows = [row for row in map_rows() if row["paper"].startswith(("Table", "Figure"))]
    built = {code(row["what"])[-1]: code(row["function"]) for row in rows}
    assert built == {item.name: [f"{item.build.__module__}.{item.build.__qualname__}"] for item in items}


def test_map_has_what_is_not_labelled_and_repeats_nothing() -> None:
    names = [row["paper"] for row in map_rows()]
    assert [name for name in UNLABELLED if not any(re.match(rf"{re.escape(name)}( \(|$)", n) for n in names)] == []
    assert len(names) == len(set(names))


HERE = "`tests/test_docs.py::test_map_rejects_a_bad_row`"


@pytest.mark.parametrize(
    ("function", "test", "expected"),
    [
        ("`grokscope.specs.RunSpec.no_such_field`", "open", "does not exist"),
        ("`grokscope.no_such_module.function`", "open", "does not exist"),
        ("`grokscope.specs.RunSpec`, `grokscope.specs.NoSuchSpec`", HERE, "grokscope.specs.NoSuchSpec does not exist"),
        ("`pathlib.Path`", "open", "not a name in grokscope"),
        ("open", "`tests/no_such_file.py::test_it`", "does not exist"),
        ("open", "`tests/test_docs.py::test_no_such`", "has no test_no_such"),
        ("open", "`tests/test_docs.py`", "not a test's address"),
        ("grokscope.specs.RunSpec", HERE, "neither open nor code"),
        ("open", "", "neither open nor code"),
    ],
)
def test_map_rejects_a_bad_row(function: str, test: str, expected: str) -> None:
    [complaint] = complaints({"paper": "Eq. 0", "what": "nothing", "function": function, "test": test})
    assert expected in complaint


@pytest.mark.parametrize(
    "name", ["grokscope.specs.RunSpec.with_seed", "grokscope.specs.run.Fork.step", "grokscope.specs"]
)
def test_map_accepts_a_closed_row(name: str) -> None:
    assert complaints({"paper": "Eq. 0", "what": "nothing", "function": f"`{name}`", "test": HERE}) == []


def test_every_open_choice_names_an_option_with_its_true_default() -> None:
    [choices] = tables(section(AUDIT, 2))
    assert len(choices) == 16
    for row in choices:
        options = [option for option in code(row["option"]) if "." in option]
        assert options, f"{row['choice']} names no option"
        assert [complaint for option in options if (complaint := option_complaint(option))] == []


def test_every_field_named_by_the_audit_is_true() -> None:
    assert [complaint for span in spec_fields(AUDIT) if (complaint := option_complaint(span))] == []


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("Training.beta2 = 0.98", "0.999 by default"),
        ("Training.warmup_steps = False", "0 by default"),
        ("Training.epsilon = 1e-8", "1e-08 by default"),
        ("Fork.step = 1000", "by default, not 1000"),
        ("Training.momentum = 0.9", "no field momentum"),
        ("Optimizer.beta2 = 0.999", "no Optimizer"),
    ],
)
def test_audit_rejects_an_untrue_option(option: str, expected: str) -> None:
    assert expected in str(option_complaint(option))


def marker_complaints(bullet: str) -> list[str]:
    _, arrow, marker = bullet.rpartition(" → ")
    names = [name for name in code(marker) if name not in spec_fields(marker)]
    addresses = [name for name in names if name.startswith("tests/")]
    functions = [name for name in names if name not in addresses]
    found = [*map(function_complaint, functions), *map(address_complaint, addresses)]
    if not arrow or not (names or spec_fields(marker) or "*open*" in marker):
        found.append(f"neither code nor open: {bullet}")
    if functions and not addresses:
        found.append(f"code without a test: {marker}")
    found += [f"{name} is a package, not the code that handles it" for name in functions if name.count(".") < 2]
    return [complaint for complaint in found if complaint is not None]


@pytest.mark.parametrize(("number", "count"), [(3, 15), (4, 17)])
def test_every_finding_of_the_audit_says_where_it_is_handled(number: int, count: int) -> None:
    found = bullets(section(AUDIT, number))
    assert len(found) == count
    assert [complaint for bullet in found for complaint in marker_complaints(bullet)] == []


def test_nothing_of_the_paper_is_open_and_every_claim_that_the_audit_names_exists() -> None:
    assert "*open*" not in AUDIT + MAP
    assert not [row for row in map_rows() if "open" in (row["function"].strip("`*"), row["test"].strip("`*"))]
    markers = [bullet.rpartition(" → ")[2] for number in (3, 4) for bullet in bullets(section(AUDIT, number))]
    names = [name for marker in markers for name in re.findall(r"\*([a-z0-9-]+)\*", marker)]
    assert len(names) > 15
    assert {*names} <= {one.name for one in (*STUDY.claims, *STUDY.contradictions)}


@pytest.mark.parametrize(
    ("bullet", "expected"),
    [
        ("A finding.", "neither code nor open"),
        ("A finding. → soon", "neither code nor open"),
        ("A finding. → `grokscope.tasks.split`", "code without a test"),
        ("A finding. → `grokscope.tasks`, `tests/test_docs.py::test_audit_rejects_a_bad_marker`", "is a package"),
        ("A finding. → `grokscope.tasks.no_such`, `tests/test_docs.py::code`", "does not exist"),
        ("A finding. → `tests/test_docs.py::test_no_such`", "has no test_no_such"),
    ],
)
def test_audit_rejects_a_bad_marker(bullet: str, expected: str) -> None:
    [complaint] = marker_complaints(bullet)
    assert expected in complaint


# tab:kan_all (Table 6), the column R² (rank 1), in the order of its rows.
RANK_ONE_R_SQUARED = (0.986, 0.989, 0.690, 0.994, 0.971, 0.923, 0.930, 0.918, 0.989)


def test_the_audits_contradictions_are_in_the_reported_tables() -> None:
    # One run, two syncs.
    assert (CROSS["add_mod97_s42"].sync, ARCH_ABLATION["2-layer standard"][1]) == (1500, 2500)
    # Counts: eleven rows without sub_mod97_s123, five primes, five seeds.
    additions = [name for name in CROSS if name.startswith("add")]
    assert (len(CROSS), len(additions), "sub_mod97_s123" in CROSS) == (11, 9, False)
    assert (
        len({CROSS[name].modulus for name in additions}) == len({name.rpartition("_s")[2] for name in additions}) == 5
    )
    # Gap and validation, with the train accuracy of 1 that the text gives.
    validation = {step: value for step, value, *_ in RANK}
    gap = {step: round(1 - value, 3) for step, value in validation.items()}
    assert (gap[2500], gap[3500], gap[4000]) == (0.947, 0.648, 0.003)
    assert gap[2500] > 0.894
    assert validation[3500] > 0.35
    drops = [round(100 * (1 - after / before), 1) for before, after in ((0.648, 0.003), (0.894, 0.003))]
    assert drops == [99.5, 99.7]
    rounded = product((0.6475, 0.6485), (0.0025, 0.0035))  # whatever the last digits were
    assert all(round(100 * (1 - after / before), 1) > 99.4 for before, after in rounded)
    # Fits counted.
    assert sum(value > 0.92 for value in RANK_ONE_R_SQUARED) == 7
    assert sorted(RANK_ONE_R_SQUARED)[:2] == [0.690, 0.918]
    # S5's order: memorised at about 600.
    assert {seed: sync for seed, (_, sync, *_) in TRANSFER.items() if sync < 600} == {42: 100, 123: 400}
    assert TRANSFER[123][2:] == (2900, 2900)
    assert [seed for seed, (*_, control) in TRANSFER.items() if control is None] == [1, 42]


def test_table_9s_constant_meets_the_last_two_branches_alone() -> None:
    seen = {decay: observed for decay, (observed, *_) in TIMING_FIT.items() if observed is not None}
    assert [decay for decay, observed in seen.items() if observed - 500 < 3600 / decay <= observed] == [4.0, 5.0]


def test_table_10s_draws_are_those_of_the_audit() -> None:
    cells = "; ".join(f"{mean:,} ± {deviation}" for mean, deviation in CROSSPRIME[97][0].values())
    assert cells in " ".join(AUDIT.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_whatever_a_page_names_in_full_exists(page: Path) -> None:
    spans = code(page.read_text(encoding="utf-8"))
    functions = [span for span in spans if re.fullmatch(r"grokscope(\.\w+)+", span)]
    addresses = [span for span in spans if re.fullmatch(r"tests/\S+::\S+", span)]
    found = [*map(function_complaint, functions), *map(address_complaint, addresses)]
    assert [complaint for complaint in found if complaint] == []


def test_the_rooms_are_those_of_import_linter_in_its_order() -> None:
    [table] = tables(DESIGN)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [layer.split(" | ") for layer in contracts[0]["layers"]]
    *upper, errors, last = layers  # those that every other room needs share a row
    assert [code(row["room"].replace("/", "")) for row in table] == [*upper, [*errors, *last]]
    assert all(row["a line belongs here if it …"] for row in table)


def homes() -> dict[str, list[Any]]:
    """Every public class of the package, by name."""
    found: dict[str, list[Any]] = {}
    for name in MODULES:
        module = importlib.import_module(name)
        for public in module.__all__:
            if inspect.isclass(getattr(module, public)):
                found.setdefault(public, []).append(getattr(module, public))
    return found


def has(owner: Any, name: str) -> bool:
    return hasattr(owner, name) or name in getattr(owner, "__dataclass_fields__", ())


def test_every_name_with_its_class_in_the_notation_exists() -> None:
    owners = homes()
    names = [name for name in code(NOTATION) if re.fullmatch(r"[A-Z]\w+\.\w+", name)]
    assert names
    for name in names:
        owner, _, field = name.partition(".")
        assert any(has(one, field) for one in owners.get(owner, [])), name


def words_of_the_package() -> set[str]:
    """Functions, classes, their arguments and fields, columns of measures, parameters of laws, axes."""
    found: set[str] = set()
    for name in MODULES:
        module = importlib.import_module(name)
        found |= set(re.findall(r"\w+", " ".join(re.findall(r'\[[\w.]+, "([^"]*)"\]', inspect.getsource(module)))))
        for public in module.__all__:
            thing = getattr(module, public)
            found |= {public, *getattr(thing, "__dataclass_fields__", ())}
            if inspect.isfunction(thing):
                found |= set(inspect.signature(thing).parameters)
    for measure in MEASURES.values():
        for column in measure.columns:
            stem, _, choices = column.partition("{")
            found |= {f"{stem}{choice.strip('}')}" for choice in choices.split(",")} if choices else {column}
    return found | {word for form in FORMS.values() for word in form.parameters}


def test_every_bare_word_of_the_notation_is_a_name_in_the_package() -> None:
    letters, _, axes = (table for table in tables(NOTATION))
    words = [word for row in letters for word in code(row["name in code"])] + [row["axis"].strip("`") for row in axes]
    bare = [word for word in words if re.fullmatch(r"[a-z]\w*", word)]
    assert len(bare) > 30
    assert sorted(set(bare) - words_of_the_package() - {"add_mod97"}) == []
    assert "median_rank" not in words_of_the_package()  # the check can fail


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    files = [target for target in targets if "://" not in target]
    assert [target for target in files if not (page.parent / target).exists()] == []


@pytest.mark.skipif(not MEASURES_PAGE.exists(), reason="the page has not been made yet")
def test_every_measure_has_its_place_on_the_page_of_measures() -> None:
    headings = re.findall(r"^## `(\w+)`", MEASURES_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == list(MEASURES)
