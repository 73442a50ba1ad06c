"""`python -m dphmm`, the same as the command `dphmm`."""

from __future__ import annotations

from dphmm.cli import main

if __name__ == "__main__":
    main()
