"""Public preference data beside the project; what needs it skips where it is absent."""

import functools
import pathlib

import pytest

from rmjax.data.formats import read

FOLDER = pathlib.Path(__file__).parents[3] / "shared" / "data"


@functools.cache
def _read(name, texts):
    return read(FOLDER / f"{name}.jsonl.gz", texts=texts and FOLDER / f"{texts}.jsonl.gz", on_empty_answer="keep")


def read_shared(name, texts=None):
    """One of the sets of ../shared/data; without its file of texts, answers are the ids that stand for them."""
    if not FOLDER.is_dir():
        pytest.skip("the folder ../shared/data with public preference data is absent")
    return _read(name, texts)
