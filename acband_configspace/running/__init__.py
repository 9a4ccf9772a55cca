"""Runs one race for real: starts, limits, times, stops and accounts for its processes."""
