"""The adapters to SMAC: they translate between the core and SMAC's objects, and only that."""
