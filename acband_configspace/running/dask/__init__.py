"""Races on the workers of a Dask cluster: each worker has a race track of its own."""
