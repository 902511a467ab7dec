"""The command line: `rmjax VERB`."""

from rmjax.cli.main import main

__all__ = ["main"]
