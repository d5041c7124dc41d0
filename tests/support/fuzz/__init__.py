"""Long random programs run in every way there is; see `python -m fuzz --help`, in `tests`."""
