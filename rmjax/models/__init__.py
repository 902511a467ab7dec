"""Decoders with a scalar head."""

from rmjax.models.config import Llama3Scaling, ModelConfig
from rmjax.models.forward import SITES, Output, Tap, forward, hidden_states
from rmjax.models.params import Block, Params, ParamSpec, abstract, init

__all__ = [
    "SITES",
    "Block",
    "Llama3Scaling",
    "ModelConfig",
    "Output",
    "ParamSpec",
    "Params",
    "Tap",
    "abstract",
    "forward",
    "hidden_states",
    "init",
]
