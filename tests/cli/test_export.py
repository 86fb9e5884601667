"""`grokscope export` and `import`."""

from pathlib import Path

import pytest
import torch
from small_commands import TINY, rejected, words

from grokscope.cli import run
from grokscope.runs import Store, run_name
from grokscope.runs.packing import save_records

pytestmark = pytest.mark.usefixtures("here", "in_process")


def test_an_export_touches_no_other_file(here: Path) -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    (here / "manifest.json").write_text('{"name": "my web page"}')
    assert run(words("export runs add_mod7_s0 --at 4 --out weights.safetensors")) == 0
    assert (here / "manifest.json").read_text() == '{"name": "my web page"}'
    assert (here / "weights.safetensors").exists()


def test_an_export_replaces_a_file_only_if_that_is_asked_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    assert run(words("export runs add_mod7_s0 --out x.safetensors")) == 0
    first = (here / "x.safetensors").read_bytes()
    sentence = "'x.safetensors' exists already; nothing was overwritten (--force replaces it)"
    rejected(words("export runs add_mod7_s0 --at 4 --out x.safetensors"), sentence, here, capsys)
    assert run(words("export runs add_mod7_s0 --at 4 --out x.safetensors --force")) == 0
    assert (here / "x.safetensors").read_bytes() != first
    assert run(words("export runs --format parquet")) == 0
    rejected(words("export runs --format parquet"), "'parquet/runs.parquet' exists already; nothing", here, capsys)
    assert run(words("export runs --format parquet --force")) == 0


def test_bad_input(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --seeds 0:2 --spec tiny.json --out runs"))
    name = run_name(TINY)
    (here / f"{name}-8.safetensors").write_text("mine")
    for line, sentence in [
        ("export runs", "name a run, as `grokscope list runs` lists them; only parquet takes all"),
        ("export runs add_mod7_s0", f"'{name}-8.safetensors' exists already; nothing was overwritten"),
        ("export runs add_mod7_s0 --out tiny.json", "'tiny.json' exists already; nothing was overwritten"),
        ("export runs add_mod7_s0 --at 5", f"{name} has no weights at step 5; stored steps: 0, 4, 8"),
        ("export runs add_mod7_s0 --out no/x.safetensors", "'no/x.safetensors' could not be written: No such file"),
        ("export runs add_mod7_s0 --out tiny.json/x", "'tiny.json/x' could not be written: Not a directory"),
        ("export runs --format parquet --at 4", "--at has no effect with --format parquet"),
        ("import file:///tmp/none", "name the folder for the runs with --out"),
        ("import runs --out copy", "'runs' is a folder without records (*.records.gz); runs in it need no import"),
        ("import nowhere://x --out copy", "the address 'nowhere://x' cannot be used"),
        ("import none.pt", "there is no file 'none.pt'"),
    ]:
        rejected(words(line), sentence, here, capsys)


def test_a_pt_file_becomes_safetensors(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"embed.weight": torch.ones(2, 2)}, here / "a.pt")
    assert run(words("import a.pt --out b.safetensors")) == 0
    assert capsys.readouterr().out == "wrote b.safetensors: 1 tensor\n"


def test_packed_records_are_listed_after_the_command_that_their_folder_names(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(words("train add_mod7 --seeds 0:2 --spec tiny.json --out trained"))
    (here / "packed").mkdir()
    save_records(here / "packed" / "all.records.gz", [one.record() for one in Store("trained")])
    rejected(words("import packed"), "name the folder for the runs with --out", here, capsys)
    rejected(words("import trained --out runs"), "a folder without records (*.records.gz)", here, capsys)
    capsys.readouterr()
    assert run(words("list packed")) == 0
    command = capsys.readouterr().out.strip().partition("make runs of them with: grokscope ")[2]
    assert run(words(command)) == 0
    then = capsys.readouterr().out.strip().partition("list them with: grokscope ")[2]
    assert run(words("list trained")) == 0
    trained = capsys.readouterr().out
    assert run(words(then)) == 0
    assert capsys.readouterr().out == trained
