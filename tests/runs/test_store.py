import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from small_folders import SPEC, everything_under, folder_with

from grokscope.errors import InputError
from grokscope.files import DamagedError
from grokscope.runs import (
    Store,
    run_name,
)


@pytest.mark.parametrize(
    "task",
    [
        "../../x",
        "/etc/passwd",
        "..",
        ".",
        "a/",
        "x" * 10_000,
        "x.",
        " ",
        "C:\\x",
        "<img onerror=alert(1)>",
        "table:../../x#0123456789abcdef",
        f"table:/{'y' * 5000}.json#0123456789abcdef",
    ],
    ids=lambda task: repr(task[:30]),
)
def test_a_hostile_name_makes_one_folder_inside_the_store(task: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "a" / "b" / "runs")
    folder = store.add(replace(SPEC, task=task))
    made = {p for p in tmp_path.rglob("*") if p.is_file()}
    assert made == {store.path / folder.name / "format", store.path / folder.name / "spec.json"}
    assert len(folder.name) <= 100
    assert set(folder.name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.")
    assert [found.spec for found in store] == [folder.spec]


@pytest.mark.parametrize("task", ["a\0b", "\u202etxt", "$(touch x)\n", "\x1b[31m", "\ud800"], ids=ascii)
def test_a_name_that_a_terminal_would_obey_is_rejected(task: str) -> None:
    with pytest.raises(InputError, match="task must be a task's name"):
        replace(SPEC, task=task)


def test_runs_that_differ_only_in_letter_case_have_names_that_differ_in_more(tmp_path: Path) -> None:
    one, other = run_name(replace(SPEC, task="s5")), run_name(replace(SPEC, task="S5"))
    assert one.lower() != other.lower()


def test_a_folder_that_leads_out_of_the_store_is_rejected(tmp_path: Path) -> None:
    outside, store = tmp_path / "outside", Store(tmp_path / "runs")
    outside.mkdir()
    store.path.mkdir()
    (store.path / run_name(SPEC)).symlink_to(outside)
    with pytest.raises(InputError, match=run_name(SPEC)):
        store.add(SPEC)
    assert list(outside.iterdir()) == []


def test_a_spec_that_differs_from_the_stored_one_is_rejected_and_nothing_is_changed(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, 10)
    (folder.path / "spec.json").write_text(replace(SPEC, train_fraction=0.4).to_json())
    before = everything_under(tmp_path)
    with pytest.raises(InputError, match=r"is the spec of another run, with the content hash 0f516e13c7a185fb"):
        Store(tmp_path).add(SPEC)
    assert everything_under(tmp_path) == before


def test_two_workers_may_add_a_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replaces = Path.replace

    def overtaken(partial: Path, target: Path) -> Path:
        """Just before our spec is in its place, another worker has put its own there, and works already."""
        monkeypatch.setattr(Path, "replace", replaces)
        partial.rename(partial.with_name(".spec.json.1.partial"))
        with Store(tmp_path).add(SPEC).lock():
            return replaces(partial, target)

    monkeypatch.setattr(Path, "replace", overtaken)
    assert Store(tmp_path).add(SPEC).spec == SPEC
    assert [found.spec for found in Store(tmp_path)] == [SPEC]


def test_a_table_may_move_and_its_run_stays_the_same(tmp_path: Path) -> None:
    here, there = (replace(SPEC, task=f"table:{place}/mine.json#0123456789abcdef") for place in ("here", "there"))
    stored = Store(tmp_path).add(here)
    again = Store(tmp_path).add(there)
    assert again.path == stored.path
    assert again.spec.task == there.task, "the file is read from where it is now"


@pytest.mark.parametrize("content", [b"", b"{", b'{"tsk": 1}', b"\xff\xfe", b"[]"])
def test_a_damaged_spec_is_named(content: bytes, tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    (folder.path / "spec.json").write_bytes(content)
    for read in (lambda: list(Store(tmp_path)), lambda: Store(tmp_path).add(SPEC)):
        with pytest.raises(DamagedError, match=rf"{folder.name}/spec.json"):
            read()


@pytest.mark.parametrize("content", [b"", b"{", b"3", b"[]", b"null"])
def test_a_damaged_outcome_is_named(content: bytes, tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    (folder.path / "outcome.json").write_bytes(content)
    with pytest.raises(DamagedError, match=r"outcome.json"):
        _ = folder.outcome


def test_a_store_cannot_be_made_where_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("mine")
    with pytest.raises(InputError, match=r"could not be created: (Not a directory|File exists)"):
        Store(tmp_path / "runs").add(SPEC)
    assert (tmp_path / "runs").read_text() == "mine"


def test_runs_are_found_by_name_word_hash_and_beginning(tmp_path: Path) -> None:
    store = Store(tmp_path)
    runs = [store.add(SPEC.with_seed(seed)) for seed in (1, 10, 11)]
    assert [found.name for found in store] == sorted(run.name for run in runs)
    for run in runs:
        assert store.find(run.name).name == run.name
        assert store.find(run.spec.content_hash).name == run.name
        assert store.find(run.spec.content_hash[:10]).name == run.name
    assert store.find("add_mod97_s1").name == runs[0].name, "seed 1 is meant, not the beginning of 10 and 11"
    with pytest.raises(InputError, match=r"'add_mod97_s' names 3 runs, such as add_mod97_s1, add_mod97_s10 and add"):
        store.find("add_mod97_s")
    with pytest.raises(InputError, match=r"there is no run 'ad_mod97_s11' in .*; did you mean 'add_mod97_s11'"):
        store.find("ad_mod97_s11")


def test_a_folder_whose_name_would_trouble_a_terminal_is_not_ours(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    for name in ("\x1b]0;x\x07", "a\nb", "\u202egnp.exe", "\udcff"):
        shutil.copytree(folder.path, tmp_path / name)
    assert [found.name for found in Store(tmp_path)] == [folder.name]


def test_other_things_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "figures").mkdir()
    folder_with(tmp_path, 10)
    assert len(list(Store(tmp_path))) == 1
    assert (tmp_path / "notes.txt").read_text() == "mine"
