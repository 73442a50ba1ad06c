"""The tests; a package, so that no installed library's own `tests` takes the name."""
