"""Races on the workers of a Dask cluster: each worker has a supervisor of its own."""
