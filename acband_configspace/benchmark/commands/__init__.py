"""The commands of ``python -m acband_configspace.benchmark``: a module for each."""
