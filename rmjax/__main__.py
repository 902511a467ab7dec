"""`python -m rmjax VERB`, the same as `rmjax VERB`."""

from rmjax.cli import main

if __name__ == "__main__":
    main()
