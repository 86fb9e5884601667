"""Arguments that several commands take alike."""

from typing import Annotated

import tyro

__all__ = ["Flag", "JsonFlag", "Place"]

Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]
JsonFlag = Annotated[bool, tyro.conf.arg(name="json"), tyro.conf.FlagCreatePairsOff]
Place = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
