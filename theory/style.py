"""How the figures of the notebooks look, and how they are written: the same bytes from the same numbers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
FIGURES = Path(os.environ.get("RMJAX_FIGURES", HERE / "figures"))  # tests draw elsewhere
# Okabe and Ito 2002: eight colours that colour-blind readers tell apart, without the yellow that fades on white.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#aa4499",
    "#56b4e9",
    "#7f7f7f",
)
INK, FAINT = "#222222", "#d9d9d9"
COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, GREY)
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))  # lines differ without colour too


def use() -> None:
    """Set the style of every figure made from here on."""
    plt.rcParams.update(
        {
            "figure.figsize": (8.4, 3.4),
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "figure.facecolor": "white",
            "savefig.facecolor": "white",
            "font.family": "DejaVu Sans",  # the one that comes with matplotlib, so that every machine draws the same
            "font.size": 9.5,
            "axes.titlesize": 10,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.labelsize": 9.5,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
            "axes.grid": False,
            "grid.color": FAINT,
            "grid.linewidth": 0.6,
            "lines.linewidth": 1.8,
            "lines.markersize": 5,
            "legend.frameon": False,
            "legend.fontsize": 8.5,
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
            "text.color": INK,
            "svg.fonttype": "path",
            "svg.hashsalt": "rmjax",  # names inside the file, which are drawn by chance without it
            "path.simplify_threshold": 0.5,
        }
    )


def save(figure: Figure, name: str) -> Any:
    """Write a figure as theory/figures/NAME.svg, without a date, and return what a notebook shows of it."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    path = FIGURES / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)  # or the notebook shows it twice
    if "ipykernel" not in sys.modules:
        return None
    from IPython.display import SVG

    return SVG(filename=str(path))
