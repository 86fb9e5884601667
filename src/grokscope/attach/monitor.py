"""Somebody else's model, measured while it trains: three lines in any PyTorch loop."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, SupportsInt, get_args

import numpy as np
import torch
from torch import Tensor, nn

from grokscope.activations import Conditioning, conditioning_basis
from grokscope.attach.arguments import as_tuple, is_whole, plain_step, train_pairs, whole_number
from grokscope.attach.encoders import Encode, encoder
from grokscope.attach.foreign_model import AT_SITES, ForeignModel, foreign_measure
from grokscope.attach.journal import Journal
from grokscope.attach.model_state import warn_of_iterators
from grokscope.attach.operations import own_task, portable, without_group
from grokscope.attach.passes import Pass
from grokscope.attach.preservation import home_of, preserve_state, unwrap
from grokscope.attach.sites import Site, find_sites, likely_sites, site_name
from grokscope.errors import InputError, plural, require, shown
from grokscope.forecast import Forecast, Prefix, forecast_runs
from grokscope.measures import Question, measure, scores
from grokscope.measures.catalogue import undefined_reason
from grokscope.runs.logs import Columns, columns_from
from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.tasks import Basis
from grokscope.timeline import Timeline, timeline_of

__all__ = ["Monitor", "Row"]

Row = dict[str, Any]
"""One evaluation: step, accuracies, losses, norm, λ, every measure's columns, and why any of them is undefined."""
OPTIMIZER = {"weight_decay": "weight_decay", "learning_rate": "lr"}  # what PyTorch calls λ and η
ALWAYS = ("memorization", "norms", "answer_share")  # what every evaluation has, named or not


class Monitor:
    """Measures a model over all pairs of its task every so many steps, and keeps the log.

    >>> model = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 7))
    >>> monitor = Monitor("add_mod7", sites=["1"], every=10, encode="one_hot")
    >>> with monitor.attach(model):
    ...     rows = [monitor.step(step) for step in range(21)]
    >>> [row["step"] for row in monitor.log], sorted(monitor.log[0])[:4]
    ([0, 10, 20], ['accuracy', 'answer_share', 'constant_share', 'fsd'])
    """

    def __init__(
        self,
        task: Any,
        sites: Sequence[Site] | Site = (),
        measures: Sequence[str] = ("fsd", "rank"),
        every: int = 100,
        *,
        symbols: int | None = None,
        encode: str | Encode = "a_b_sep",
        readout: Callable[[Any], Tensor] | None = None,
        position: int | None = -1,
        train: Any = None,
        by: Conditioning = "",
        basis: str = "",
        keys: Sequence[int] | None = None,
        chunk: int | None = None,
        out: Path | str | None = None,
        model_name: str = "",
        seed: int = 0,
    ) -> None:
        """What is measured, where and when.

        Args:
            task: The operation: a task's name, a function of (a, b), or a table; a `Task` too.
            sites: Where activations are read; columns of the first have plain names, those of others end in `@SITE`.
            measures: Names from `foreign_measures()`; accuracies, losses and norm are always there, and at a site the
                answer share. Most are read at a site; `logits`, and restricted losses with `keys`, need none.
            every: Steps between evaluations.
            symbols: n, for an operation given as a function.
            encode: From (a, b) to the model's inputs: a ready encoder's name, or a function.
            readout: From the model's output to logits [inputs, classes]; by default found, at the last position.
            position: Which position of [inputs, positions, …] is read; None takes all of them as neurons.
            train: The training pairs: a mask over `task.inputs`, an n × n mask, indices of `task.inputs`, or pairs
                [k, 2].
            by: What activations are conditioned on, `answer` or `sum`; the answer by default.
            basis: The basis in which they are read; the task's faithful one by default.
            keys: Key modes, counted from 1, for `trig` and `excluded`; those of each evaluation if not given.
            chunk: Pairs in one forward pass; as many as the device likes if not given.
            out: A folder of runs in which the log is kept, for `grokscope list`, `show` and `report`.
            model_name: What to call the model there; its class if not given.
            seed: What tells apart monitored runs of one model there.
        """
        self._settings = {name: value for name, value in locals().items() if name != "self"}
        self.every = whole_number(every, "every", "steps")
        self.chunk = None if chunk is None else whole_number(chunk, "chunk", "pairs")
        require(
            position is None or is_whole(position), "position must be a whole number, or None for all of them", position
        )
        require(readout is None or callable(readout), "readout must be a function of the model's output", readout)
        require(
            by in get_args(Conditioning), f"by must be one of {', '.join(filter(None, get_args(Conditioning)))}", by
        )
        self.task = own_task(task, symbols)
        require(
            self.task.pairs is not None,
            f"a monitor passes pairs of symbols to a model, and {self.task.name} is not a table of pairs",
        )
        self.position, self.by, self.basis_name = position, by, basis
        self.sites = _distinct((sites,) if isinstance(sites, str) or callable(sites) else as_tuple(sites, "sites"))
        self.basis: Basis | None = conditioning_basis(self.task, by, basis) if self.task.bases else None
        names = (measures,) if isinstance(measures, str) else as_tuple(measures, "measures")
        self.measures = self._offered([name for name in dict.fromkeys(names) if name not in ALWAYS])
        self.encode, self.readout = encoder(encode, self.task.symbols), readout
        self.encodes_by_name = isinstance(encode, str)
        self.is_train = None if train is None else train_pairs(self.task, train)
        self.keys = None if keys is None else self._chosen(keys)
        self.log: list[Row] = []
        self.attached: tuple[torch.optim.Optimizer, ...] = ()
        self.controlled: tuple[torch.optim.Optimizer, ...] = ()
        self.journal = None if out is None else Journal(Path(out), self.task, self.is_train, every, model_name, seed)
        self._model: Any = None

    def __repr__(self) -> str:
        measures = ", ".join(self.measures) or "no measures"
        return f"<Monitor of {self.task.name}: {measures}; {plural(len(self.log), 'evaluation')}>"

    @contextmanager
    def attach(self, model: Any, *optimizers: torch.optim.Optimizer) -> Iterator["Monitor"]:
        """Monitor this model inside: sites, inputs and classes are checked at once, before any training.

        With optimisers, λ of each is logged too. A log that is kept on the disk is closed at the end. A warning names
        what the model holds and no evaluation can restore, such as an iterator.
        """
        require(self._model is None, "this monitor is attached already; each model needs a monitor of its own")
        self.check(model)
        self._model, self.attached = model, optimizers or self.attached
        try:
            yield self
        finally:
            self._model = None
        self.finish()

    def step(self, step: SupportsInt) -> Row | None:
        """Evaluate the attached model if an evaluation is due; the row, or None."""
        require(
            self._model is not None,
            "the monitor watches no model: use `with monitor.attach(model):`, or monitor.measure",
        )
        return self.measure(self._model, step) if self.is_due(step) else None

    def is_due(self, step: SupportsInt) -> bool:
        """Whether a step is a multiple of `every`, or the first after one that no step hit.

        >>> monitor = Monitor("add_mod7", every=100)
        >>> [step for step in range(0, 400, 64) if monitor.is_due(step) and not monitor.log.append({"step": step})]
        [0, 128, 256, 320]
        """
        step, last = plain_step(step), self.log[-1]["step"] if self.log else 0
        return step % self.every == 0 or step // self.every > last // self.every

    def measure(self, model: Any, step: SupportsInt) -> Row:
        """Evaluate a model now, and log it. Training goes on as if it had not been evaluated, bit for bit."""
        step = plain_step(step)
        if self.log and step < self.log[-1]["step"]:
            raise InputError(
                f"step {step} comes after step {self.log[-1]['step']} was logged; go back with load_state_dict"
            )
        row = self.evaluate(model, step)
        if self.log and self.log[-1]["step"] == step:  # evaluated again: the last evaluation counts
            self.log.pop()
            if self.journal is not None:
                self.journal.rewind(self.log)
        self.log.append(row)
        if self.journal is not None:
            self.journal.append(row, model, self.log[0].get("weight_decay"))
        return row

    def evaluate(self, model: Any, step: int = 0) -> Row:
        """Evaluate a model now, without logging it."""
        inside = self._readable(model)
        with preserve_state(inside):
            found = self._pass().evaluate(inside)
            row: Row = {"step": step, **self._scores(found), "norm": _norm(inside), **self._weight_decays()}
            reasons = []
            for i, name in enumerate(map(site_name, self.sites or ("",))):
                columns = self._columns(found.at(name))
                reasons.append(columns.pop("undefined"))
                row |= {column if i == 0 else f"{column}@{name}": value for column, value in columns.items()}
        if row["loss"] != row["loss"]:
            reasons.append("logits are not numbers")
        return row | {"undefined": "; ".join(filter(None, reasons))}

    def check(self, model: Any) -> None:
        """Reject a model that cannot be read: a site it lacks, inputs it rejects, too few or too many classes."""
        inside = self._readable(model)
        find_sites(inside, self.sites)
        warn_of_iterators(inside)
        with preserve_state(inside):
            self._pass().probe(inside)

    def finish(self) -> None:
        """Close the log on the disk: how the run ended, by the same rules as grokscope's own."""
        if self.journal is not None and self.log:
            self.journal.finish(self.log)

    def columns(self) -> Columns:
        """The log by columns, text left out; NaN where an evaluation lacks one."""
        return columns_from(self.log)

    def timeline(self) -> Timeline:
        """When it memorised, synchronised and grokked, by the paper's thresholds, FSD_gen's of a group.

        It needs the training pairs.
        """
        require(self.is_train is not None, "a timeline needs the training pairs: give Monitor(train=…)")
        return timeline_of(self.columns(), sync_at=ReadingSpec().sync_at(is_group=self.task.is_read_in_irreps))

    def forecast(
        self, horizon: int = 10_000, weight_decay: float | None = None, learning_rate: float | None = None
    ) -> Forecast:
        """Where the model is heading, from its evaluations so far: whether it groks within `horizon` steps, and when.

        λ and η are those of the attached optimisers if not given. The forecaster was fitted to runs of grokscope's own;
        `outside` names each way in which this one is unlike them.
        """
        [ahead] = forecast_runs([self.prefix(weight_decay, learning_rate)], horizon)
        return ahead

    def prefix(self, weight_decay: float | None = None, learning_rate: float | None = None) -> Prefix:
        """The evaluations so far, as a forecaster sees them; λ and η as in `forecast`.

        With a last step of its own, `grokscope.forecast.forecast_fan(monitor.prefix(), last)` says how the forecast has
        gone so far, and whether it pays to go on.
        """
        require(self.log, "a forecast needs an evaluation: call step or measure first")
        columns = {name: np.array(values, dtype=float) for name, values in self.columns().items() if name != "step"}
        steps = np.array([row["step"] for row in self.log])
        groups = [group for one in self.optimizers.values() for group in one.param_groups]
        known = {"weight_decay": weight_decay, "learning_rate": learning_rate}
        known |= {name: groups[0].get(key) for name, key in OPTIMIZER.items() if known[name] is None and groups}
        found = {name: float(value) for name, value in known.items() if value is not None}
        if self.is_train is not None:
            found |= {"train_fraction": float(self.is_train.double().mean()), "train_rows": float(self.is_train.sum())}
        return Prefix(steps, columns, found | {"classes": float(self.task.classes)})

    @property
    def record(self) -> RunRecord:
        """The run so far, as every stored run is read; it needs a log that is kept."""
        if self.journal is None or self.journal.folder is None:
            raise InputError("a record is read from a kept log: give Monitor(out=…), and evaluate the model once")
        return self.journal.folder.record()

    @property
    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Every optimiser that is attached or controlled, by the column of its λ."""
        known = dict.fromkeys((*self.attached, *self.controlled))
        return {"weight_decay" if i == 1 else f"weight_decay@{i}": one for i, one in enumerate(known, start=1)}

    def state_dict(self) -> dict[str, Any]:
        """The log, for a checkpoint of the training that it belongs to."""
        return {"log": [dict(row) for row in self.log]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a log; what was written to the disk after it is dropped."""
        require(isinstance(state, Mapping) and "log" in state, "the state is not a monitor's: it has no entry 'log'")
        require(
            all(isinstance(row, Mapping) and "step" in row for row in state["log"]),
            "the state is not a monitor's: its log has something that is no evaluation",
        )
        self.log = [dict(row) for row in state["log"]]
        if self.journal is not None:
            self.journal.rewind(self.log)

    def __getstate__(self) -> dict[str, Any]:
        """Settings and log: a copy watches no model and no optimiser, and writes no other's log on the disk."""
        chosen = {"task": portable(self.task), "measures": self.measures, "train": self.is_train}
        return {"settings": self._settings | chosen, **self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The monitor with these settings and this log."""
        Monitor.__init__(self, **state["settings"])
        self.log = state["log"]

    def _readable(self, model: Any) -> nn.Module:
        """The module inside, unless what is asked is read at a site and there is none."""
        inside = unwrap(model)
        needed = AT_SITES if self.keys is None else AT_SITES - {"activations"}
        blind = [name for name in self.measures if not self.sites and foreign_measure(name).needs & needed]
        if blind:
            by_keys = "" if any("means" in foreign_measure(name).needs for name in blind) else ", or keys=…"
            raise InputError(
                f"{' and '.join(blind)} {'is' if len(blind) == 1 else 'are'} read at a site: give Monitor(sites=…), "
                f"such as {' or '.join(map(shown, likely_sites(inside)))} of {type(inside).__name__}{by_keys}; "
                "measures=[] asks for accuracies, losses and norm alone"
            )
        return inside

    def _pass(self) -> Pass:
        needs = frozenset().union(*(foreign_measure(name).needs for name in self.measures))
        return Pass(
            task=self.task,
            by=self.by,
            sites=self.sites,
            encode=self.encode,
            casts=self.encodes_by_name,
            readout=self.readout,
            position=self.position,
            is_train=self.is_train,
            keeps_all=bool(needs & {"activations", "logits"}),
            chunk=self.chunk,
        )

    def _scores(self, found: ForeignModel) -> Row:
        """Accuracy and loss on all pairs, and on training and validation pairs where they are known."""
        parts = ("train_", "validation_", "") if found.knows_split else ("",)
        all_scores = scores(found)
        return {
            f"{part}{word}": float(getattr(all_scores, part + word)) for word in ("accuracy", "loss") for part in parts
        }

    def _columns(self, found: ForeignModel) -> Row:
        """The columns of every measure at one site, and why any of them is undefined."""
        question = Question(found, by=self.by, basis_name=self.basis_name, keys=self.keys)
        row: Row = {**measure(question, self.measures)[0]} if self.measures else {"undefined": ""}
        if question.has("means"):
            share = row.setdefault("answer_share", float(question.means().answer_share))
            if share != share and not row["undefined"]:
                row["undefined"] = undefined_reason(question, 0, ["answer_share"])
        return row

    def _offered(self, names: list[str]) -> tuple[str, ...]:
        """The measures that this operation has; a warning names what it lacks."""
        lacking = [name for name in names if "basis" in foreign_measure(name).needs and self.basis is None]
        if lacking:
            warnings.warn(
                f"{without_group(self.task)}: {', '.join(lacking)} need a basis and are left out; accuracies, losses, "
                "norm and answer share are measured",
                stacklevel=3,
            )
        return tuple(name for name in names if name not in lacking)

    def _chosen(self, keys: Sequence[int]) -> Tensor:
        if self.basis is None:
            raise InputError(f"{without_group(self.task)}: it has no modes to choose keys from")
        count = len(self.basis.modes)
        wrong = [key for key in keys if not is_whole(key) or not 1 <= key <= count]
        if wrong:
            raise InputError(f"keys are modes from 1 to {count}, got {shown(wrong[0])}")
        chosen = torch.zeros(1, count, dtype=torch.bool)
        chosen[0, [key - 1 for key in keys]] = True
        return chosen

    def _weight_decays(self) -> Row:
        """λ of each optimiser that has one, the largest of its groups."""
        decays = {
            column: [float(group["weight_decay"]) for group in one.param_groups if "weight_decay" in group]
            for column, one in self.optimizers.items()
        }
        return {column: max(found) for column, found in decays.items() if found}


def _distinct(sites: tuple[Site, ...]) -> tuple[Site, ...]:
    """The sites, unless two of them would have the same columns."""
    for i, site in enumerate(sites):
        require(
            not isinstance(site, nn.Module) and (isinstance(site, str) or callable(site)),
            "a site is a module's name, as model.named_modules() has it, or a function of (model, inputs), "
            f"got {type(site).__name__}",
        )
        require(
            site_name(site) not in map(site_name, sites[:i]),
            f"two sites are called {shown(site_name(site))}: give each a name of its own",
        )
    return sites


def _norm(model: nn.Module) -> float:
    """‖W‖ of all parameters, in float64; read from each device once."""
    squares: dict[torch.device, list[Tensor]] = {}
    for parameter in model.parameters():
        value = parameter.detach().to(home_of(parameter.device))
        wide = (torch.view_as_real(value.resolve_conj()) if value.is_complex() else value).double()  # |z|² = x² + y²
        squares.setdefault(wide.device, []).append(wide.square().sum())
    return sum(float(torch.stack(found).sum()) for found in squares.values()) ** 0.5
