"""The pure core: AC-Band as the paper has it and as this package searches. Sans-I/O."""
