"""Public preference data, read once for all tests."""

import functools

from rmjax.data.formats import read


@functools.cache
def public_set(folder, name, texts=None):
    """One of the sets of the `shared` fixture; without its file of texts, answers are the ids that stand for them."""
    data = folder / "data"
    return read(data / f"{name}.jsonl.gz", texts=texts and data / f"{texts}.jsonl.gz", on_empty_answer="keep")
