"""What a law is said to be fitted to."""

from dataclasses import replace

from fork_records import PARENT, fork_record

from grokscope.law import fork_families
from grokscope.runs import RunOutcome
from grokscope.view.families import fitted_size, left_out


def test_failed_branches_are_counted_and_not_fitted() -> None:
    usual = [fork_record(PARENT.with_seed(s), d, round(3000 / d)) for s in range(3) for d in (1.0, 2.0, 3.0)]
    never = [fork_record(one.spec, one.spec.training.weight_decay, None) for one in usual[1:3]]
    failed = [
        replace(
            usual[1 + i],
            outcome=RunOutcome("unstable", memorized=300),
            evaluations={**one.evaluations, "train_accuracy": [*one.evaluations["train_accuracy"][:-1], 0.2]},
        )
        for i, one in enumerate(never)
    ]
    (family,) = fork_families([usual[0], *failed, *usual[3:]])
    assert (fitted_size(family), left_out(family)) == ("7 of 9 forks", "2 unstable")
    (whole,) = fork_families(usual)
    assert (fitted_size(whole), left_out(whole)) == ("9 forks", "")
