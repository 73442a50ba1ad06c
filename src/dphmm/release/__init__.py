"""The one way to release: streams, batches, and where they stand."""
