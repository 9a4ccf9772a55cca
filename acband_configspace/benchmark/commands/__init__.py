"""The commands of ``python -m acband_configspace.benchmark``: a module for each.

``paper`` and ``faults`` have further modules that begin with their names; ``parallel`` runs jobs
for all that have many.
"""
