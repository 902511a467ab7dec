"""A synthetic world of preferences that writes its own text and knows its own truth: the embedded default.

>>> from rmjax.data import synthetic
>>> made = synthetic.make(synthetic.World(num_prompts=1))
>>> print(made.data.prompts[0])
Ada saw 6 brown bags, then 3. Which is fewer? Answer in words.
>>> for reward, text in zip(made.gold, made.data.responses):
...     print(f"{reward:4}  {text}")
 2.5  How tedious. Ada states three brown bags. You may check. One step did it.
 3.0  Gladly. Ada counts THREE brown bags. One step did it.
-1.0  Not again, please. Ada states TWO brown bags.
 3.5  This is my answer. Ada states three brown bags. It took a moment. Nothing to add.

A right number is worth 2, the form that was asked for 1.5, a polite opening 1 and a rude one -1; idle sentences are
worth nothing, but good answers have more of them, as far as a dial says.
"""

from rmjax.data.synthetic.grammar import FEATURES
from rmjax.data.synthetic.make import SyntheticData, make
from rmjax.data.synthetic.truth import Bayes, bayes
from rmjax.data.synthetic.world import World

__all__ = ["FEATURES", "Bayes", "SyntheticData", "World", "bayes", "make"]
