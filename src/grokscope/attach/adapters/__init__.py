"""Callbacks, metrics and sites for other people's frameworks, each imported when it is called."""

from grokscope.attach.adapters.hugging_face import hugging_face_callback
from grokscope.attach.adapters.lightning import lightning_callback
from grokscope.attach.adapters.nnsight import nnsight_site
from grokscope.attach.adapters.steering import hugging_face_steering, lightning_steering
from grokscope.attach.adapters.torchmetrics import fsd_metric

__all__ = [
    "fsd_metric",
    "hugging_face_callback",
    "hugging_face_steering",
    "lightning_callback",
    "lightning_steering",
    "nnsight_site",
]
