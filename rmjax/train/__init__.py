"""Training: from a frozen configuration to a run on disk."""

from rmjax.train.config import DataConfig, ReadConfig, TrainConfig
from rmjax.train.fit import fit
from rmjax.train.frozen import fit_head, layer_states
from rmjax.train.optimizer import OptimizerConfig
from rmjax.train.run import Run, open_run
from rmjax.train.scores_file import join_scores
from rmjax.train.scoring import Scored, make_score_fn, score_all

__all__ = [
    "DataConfig",
    "OptimizerConfig",
    "ReadConfig",
    "Run",
    "Scored",
    "TrainConfig",
    "fit",
    "fit_head",
    "join_scores",
    "layer_states",
    "make_score_fn",
    "open_run",
    "score_all",
]
