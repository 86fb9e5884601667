"""An outcome is bound to its run, its logs and its manifest."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from small_folders import folder_with, state

from grokscope.files import DamagedError
from grokscope.runs import RunFolder, RunOutcome

ROW = {"step": 0, "train_accuracy": 0.5}


@pytest.fixture
def ended(tmp_path: Path) -> RunFolder:
    folder = folder_with(tmp_path)
    folder.save(25, state(25), "weights", is_fork_point=True)
    folder.append(ROW)
    folder.finish(RunOutcome("never", provenance={"commit": "abc"}))
    return folder


def stored(folder: RunFolder) -> dict[str, object]:
    return json.loads((folder.path / "outcome.json").read_bytes())


def rewritten(folder: RunFolder, facts: dict[str, object]) -> None:
    """The same with the digest of what it says now."""
    rest = {name: value for name, value in facts.items() if name != "sha256"}
    digest = sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    (folder.path / "outcome.json").write_text(json.dumps({**rest, "sha256": digest}))


def test_it_names_the_run_and_the_digests_of_its_files(ended: RunFolder) -> None:
    found = stored(ended)
    assert found["run"] == ended.spec.content_hash
    contents = {name: (ended.path / name).read_bytes() for name in ("log.jsonl", "manifest.json")}
    assert found["files"] == {name: sha256(content).hexdigest() for name, content in contents.items()}
    assert ended.outcome == RunOutcome("never", provenance={"commit": "abc"})
    assert ended.log() == [ROW]


def test_a_manifest_names_the_run_and_one_of_another_run_is_rejected(ended: RunFolder) -> None:
    path = ended.path / "manifest.json"
    ended.reopen()
    assert ended.latest_state()[0] == 25
    path.write_text(path.read_text().replace(ended.spec.content_hash, "0" * 16))
    assert ended.latest_state() is None
    with pytest.raises(DamagedError, match="is the manifest of another run"):
        ended.weights_at(25)


@pytest.mark.parametrize("name", ["log.jsonl", "measures.jsonl", "manifest.json"])
def test_what_is_not_as_it_was_at_the_end_is_not_read(name: str, ended: RunFolder) -> None:
    if name == "manifest.json":
        ended.save(20, state(20), "state", is_fork_point=True)
        for read in (lambda: ended.weights_at(25), ended.latest_state):
            with pytest.raises(DamagedError, match=r"manifest\.json' is not the one with which the run ended"):
                read()
        return
    ended.append({"step": 10}, "log" if name == "log.jsonl" else "measures")
    with pytest.raises(DamagedError, match=rf"{name}' is not the one with which the run ended"):
        ended.record()
    assert ended.record(with_logs=False).outcome.outcome == "never"
    ended.reopen()
    assert len(ended.record().evaluations["step"]) == (2 if name == "log.jsonl" else 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"run": "0" * 16}, "is the outcome of another run"),
        ({"run": None}, "is the outcome of another run"),
        ({"files": None}, "does not name the sha256 of its files"),
        ({"files": {"log.jsonl": "abc"}}, "does not name the sha256 of its files"),
        ({"files": [1]}, "does not name the sha256 of its files"),
        ({"outcome": "exploded"}, "an outcome is one of"),
        ({"trigger": {"restored_at": 3}}, "'trigger' does not say at which steps it fired"),
        ({"grokked": -1}, "'grokked' is not a step"),
    ],
)
def test_an_outcome_with_its_digest_that_makes_no_sense_is_rejected(
    change: dict[str, object], sentence: str, ended: RunFolder
) -> None:
    rewritten(ended, stored(ended) | change)
    with pytest.raises(DamagedError, match=sentence):
        _ = ended.outcome


@pytest.mark.parametrize("left_out", [("sha256",), ("sha256", "run", "files"), ("run", "files")])
def test_only_a_run_of_the_first_format_may_lack_names(left_out: tuple[str, ...], ended: RunFolder) -> None:
    facts = {name: value for name, value in stored(ended).items() if name not in left_out}
    if "sha256" in left_out:
        (ended.path / "outcome.json").write_text(json.dumps(facts))
    else:
        rewritten(ended, facts)
    with pytest.raises(DamagedError, match=r"lacks its sha256|of another run"):
        _ = ended.outcome
    (ended.path / "format").write_text("grokscope run 1\n")
    if "run" in left_out:
        assert ended.outcome.outcome == "never"
    else:
        with pytest.raises(DamagedError, match="lacks its sha256"):
            _ = ended.outcome


def test_it_is_written_last(ended: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before the outcome is there, the run has not ended, and everything else is as it will be."""
    ended.reopen()
    ended.save(20, state(20), "weights", is_fork_point=False)

    def killed(*arguments: object) -> None:
        raise SystemExit

    monkeypatch.setattr("grokscope.runs.run_folder.write_atomically", killed)
    with pytest.raises(SystemExit):
        ended.finish(RunOutcome("never"))
    monkeypatch.undo()
    assert not ended.outcome.is_finished
    before = {path.name: path.read_bytes() for path in ended.path.iterdir()}
    ended.finish(RunOutcome("never"))
    assert {path.name: path.read_bytes() for path in ended.path.iterdir() if path.name != "outcome.json"} == before
    assert ended.log() == [ROW]
