"""What a run was trained for."""

from dataclasses import dataclass

from grokscope.specs.spec import Spec, require

__all__ = ["Membership"]


@dataclass(frozen=True)
class Membership(Spec):
    """A run's place in a study; one run may have several, in one study or in many."""

    study: str
    """The study's name, `synchronization`."""
    experiment: str
    """Which of the study's experiments, `base`."""
    name: str
    """What the experiment calls the run, `add_mod97_s42`."""

    def check(self) -> None:
        """No part is empty."""
        for part in (self.study, self.experiment, self.name):
            require(part != "", "a membership names study, experiment and run", self)
