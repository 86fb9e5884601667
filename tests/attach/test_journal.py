from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from own_models import SITE, Attended, attended, pairs_of, train

import grokscope
from grokscope import Monitor
from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.law import fork_families
from grokscope.runs import Store
from grokscope.runs.packing import pack_records, unpack_records
from grokscope.specs import Fork, RunSpec, Training
from grokscope.timeline import Outcome


def test_the_log_is_read_by_list_show_and_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from grokscope.cli import run

    tokens, answers, is_train = pairs_of("add_mod7")
    model = attended()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=2.0)
    monitor = Monitor("add_mod7", SITE, every=10, train=is_train, out=tmp_path, model_name="<b>mine</b>", seed=3)
    with monitor.attach(model, optimizer):
        train(model, tokens, answers, 20, monitor.step, optimizer)
    assert run(["list", str(tmp_path)]) == 0
    assert "add_mod7_s3" in capsys.readouterr().out
    assert run(["show", str(tmp_path), "add_mod7_s3"]) == 0
    assert "not memorised, ended at step 20" in capsys.readouterr().out
    folder = next(iter(Store(tmp_path)))
    assert (folder.spec.model, folder.spec.training.weight_decay) == ("<b>mine</b>", 2.0)
    record = folder.record()
    assert record.timeline.outcome in (Outcome.UNSTABLE, Outcome.NEVER)
    assert record.evaluations["fsd"] == monitor.columns()["fsd"]
    (tmp_path / "records.gz").write_bytes(pack_records([record]))
    assert unpack_records(tmp_path / "records.gz")[0].spec == folder.spec
    with pytest.raises(InputError, match="was only monitored: '<b>mine</b>' is trained elsewhere"):
        run_all([folder.spec], Store(tmp_path))
    fork = replace(folder.spec, fork=Fork(folder.spec.content_hash, 20))
    with pytest.raises(InputError, match=f"the run {folder.spec.content_hash} was only monitored"):
        run_all([fork], Store(tmp_path))


def test_a_decay_that_is_not_known_is_unknown_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from grokscope.cli import run

    _, _, is_train = pairs_of("add_mod7")
    out = tmp_path / "runs"
    with Monitor("add_mod7", SITE, train=is_train, out=out).attach(attended()) as monitor:
        monitor.step(0)
    folder = next(iter(Store(out)))
    assert folder.spec.training.weight_decay is None
    assert RunSpec.from_json(folder.spec.to_json()) == folder.spec
    assert grokscope.open(out).table()[0]["weight_decay"] is None
    assert fork_families([folder.record()]) == []
    commands = {
        "list": "–",
        "show": "λ unknown",
        "watch": "λ=?",
        "status": "",
        "doctor": "",
        "query": "",
    }
    for command, words in commands.items():
        more = {"watch": ["--once"], "query": ["select weight_decay from runs"]}.get(command, [])
        assert run([command, str(out), *more]) == 0, capsys.readouterr().err
        assert words in capsys.readouterr().out
    assert run(["report", str(out), "--out", str(tmp_path / "report.html")]) == 0


def test_a_run_that_is_trained_here_has_a_decay() -> None:
    with pytest.raises(InputError, match="weight_decay must be a finite number, unless the run is only monitored, got"):
        RunSpec(training=Training(weight_decay=None))
    with pytest.raises(InputError, match="weight_decay is not known of a run that was only monitored"):
        _ = Training(weight_decay=None).known_weight_decay


def test_a_second_log_in_the_same_place_is_rejected_and_a_continued_one_goes_on(tmp_path: Path) -> None:
    _, _, is_train = pairs_of("add_mod7")
    model, places = attended(), {"train": is_train, "out": tmp_path}
    first = Monitor("add_mod7", SITE, **places)
    first.measure(model, 0)
    state = first.state_dict()
    first.measure(model, 100)
    with pytest.raises(InputError, match="holds a log already; give Monitor another seed or model_name"):
        Monitor("add_mod7", SITE, **places).measure(model, 0)
    again = Monitor("add_mod7", SITE, **places)
    again.load_state_dict(state)
    again.measure(model, 50)
    assert [row["step"] for row in next(iter(Store(tmp_path))).log()] == [0, 50]


def test_somebodys_own_group_is_kept_beside_its_runs(tmp_path: Path) -> None:
    group = grokscope.named_group("S3")
    train_mask = np.random.default_rng(0).random((6, 6)) < 0.5
    monitor = Monitor(group.table, SITE, train=train_mask, out=tmp_path)
    with monitor.attach(Attended(7, 6)):
        monitor.step(0)
    record = next(iter(Store(tmp_path))).record()
    assert grokscope.named_task(record.spec.task).group.order == 6
    assert record.timeline.last == 0


def test_a_step_evaluated_twice_is_written_once_and_reasons_survive_a_restart(tmp_path: Path) -> None:
    from grokscope.runs import Store

    _, _, is_train = pairs_of("add_mod7")
    model, broken, places = Attended(8, 7), Attended(8, 7), {"train": is_train, "out": tmp_path}
    with torch.no_grad():
        broken.mlp[0].weight[0, 0] = torch.nan
    first = Monitor("add_mod7", "mlp.1", **places)
    first.measure(model, 0)
    first.measure(broken, 0)
    again = Monitor("add_mod7", "mlp.1", **places)
    again.load_state_dict(first.state_dict())
    again.finish()  # nothing seen since: nothing to write
    again.measure(model, np.int64(100))
    again.finish()
    folder = next(iter(Store(tmp_path)))
    assert [row["step"] for row in folder.log()] == [0, 100]
    assert folder.outcome.undefined == {"0": first.log[0]["undefined"]}
    assert "not numbers" in folder.outcome.undefined["0"]
