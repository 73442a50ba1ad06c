"""What keeps the repository in order; run as `python scripts/NAME.py`."""
