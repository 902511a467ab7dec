"""Decoders with a scalar head."""

from rmjax.models.config import Llama3Scaling, ModelConfig
from rmjax.models.forward import SITES, Output, Tap, forward, hidden_states
from rmjax.models.load import RewardModel, load
from rmjax.models.params import Block, Params, ParamSpec, abstract, init
from rmjax.models.save import save

__all__ = [
    "SITES",
    "Block",
    "Llama3Scaling",
    "ModelConfig",
    "Output",
    "ParamSpec",
    "Params",
    "RewardModel",
    "Tap",
    "abstract",
    "forward",
    "hidden_states",
    "init",
    "load",
    "save",
]
