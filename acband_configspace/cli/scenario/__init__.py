"""Scenario files of three kinds, read into one value."""
