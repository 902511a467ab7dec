"""A synthetic world of preferences that writes its own text and knows its own truth: the embedded default.

>>> from rmjax.data import synthetic
>>> made = synthetic.make(synthetic.World(num_prompts=1))
>>> print(made.data.prompts[0])
Ada saw 7 brown bags, then 4. Which is fewer? Answer plainly.
>>> for reward, text in zip(made.gold, made.data.responses):
...     print(reward, text)
0.5 ADA WRITES 4 BROWN BAGS. You may check. One step did it. I checked twice. What a bore.
3.5 ADA STATES 4 BROWN BAGS. You may check. Have a nice day!
0.5 ADA WRITES 4 BROWN BAGS. I checked twice. Nothing to add. Leave me alone.
1.5 ADA STATES 2 BROWN BAGS. One step did it. So much for that. Thank you!

A right number is worth 2, the form that was asked for 1.5, a polite closing 1.5 and a rude one -1.5. Idle sentences
are worth nothing, but good answers have more of them, as far as a dial says.
"""

from rmjax.data.synthetic.grammar import FEATURES
from rmjax.data.synthetic.make import SyntheticData, make
from rmjax.data.synthetic.truth import Bayes, bayes
from rmjax.data.synthetic.world import World

__all__ = ["FEATURES", "Bayes", "SyntheticData", "World", "bayes", "make"]
