"""Files of preferences, read into one object: which formats there are, and how their rows are understood."""

from rmjax.data.formats.fields import Fields
from rmjax.data.formats.reader import read

__all__ = ["Fields", "read"]
