"""highs."""
