"""A door to Flax, both ways.

Our trunk and head as an `nnx.Module`: `from_params`, `to_params`, `RewardDecoder`, and `for_module`, which lets an
optimiser of a `Params` tree run under `nnx.Optimizer`. Our head, losses and layer margins on a backbone that others
wrote: `NNXReward` and `LinenReward`, or `read` on arrays from anywhere. `unpack` makes rows of single texts for a
backbone that knows no trees; `check_end_point` says whether its layers are what the margins at every layer need.
"""

from rmjax.interop.linen import LinenReward
from rmjax.interop.nnx import NNXReward, RewardDecoder, for_module, from_params, to_params
from rmjax.interop.reading import Reading, check_end_point, read
from rmjax.interop.unpack import unpack

__all__ = [
    "LinenReward",
    "NNXReward",
    "Reading",
    "RewardDecoder",
    "check_end_point",
    "for_module",
    "from_params",
    "read",
    "to_params",
    "unpack",
]
