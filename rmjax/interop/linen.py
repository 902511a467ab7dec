"""Our head, likelihood and layer margins on a Linen backbone of others."""

from __future__ import annotations

import jax.numpy as jnp
from flax import linen

from rmjax.batch import Batch
from rmjax.comparisons import Ties
from rmjax.head import Head
from rmjax.interop.reading import FinalNorm, How, Reading, States, read_backbone


class LinenReward(linen.Module):
    """Our head, likelihood and layer margins on a Linen backbone; `NNXReward` says what each part means.

    The two functions are given the backbone bound to its variables, so they may call any of its methods. The head is
    the parameter "head" and starts at zero.

    Args:
        backbone: any `linen.Module`.
        states: `(backbone, batch) -> states [R, T, D]` after the final norm, or `(states, layers)`.
        final_norm: `(backbone, x) -> x`, the backbone's; needed with layers.
        trees: the backbone attends along `segment` and `parent`.

    Example:
        >>> import jax, numpy as np
        >>> from rmjax import Comparisons
        >>> rows = np.array([[1, 2, 3], [1, 2, 4]])
        >>> none, depth, pairs = rows * 0, rows * 0 + np.arange(3), Comparisons.from_pairs([0], [1], [0, 0])
        >>> batch = Batch(rows, none, none - 1, depth, np.array([2, 5]), pairs)
        >>> model = LinenReward(linen.Embed(9, 4), states=lambda net, batch: net(batch.tokens))
        >>> variables = model.init(jax.random.key(0), batch)
        >>> reading = model.apply(variables, batch)
        >>> variables["params"]["head"].shape, f"{reading.loss_sum / reading.count:.3f}"
        ((4,), '0.693')
    """

    backbone: linen.Module
    states: States
    final_norm: FinalNorm | None = None
    trees: bool = False

    @linen.compact
    def __call__(self, batch: Batch, ties: Ties | None = None) -> Reading:
        """Read a batch.

        Args:
            batch: rows that the backbone can take.
            ties: what the link does with ties.

        Returns:
            Scores, loss as sum and count, margins, and margins at every layer where `states` gives layers.
        """

        def head(size: int) -> Head:
            return Head(self.param("head", linen.initializers.zeros, (size,), jnp.float32))

        return read_backbone(self.backbone, batch, head, How(self.states, self.final_norm, self.trees), ties)
