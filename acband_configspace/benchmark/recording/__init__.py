"""Records runtime tables: real solvers, sampled configurations, generated instances."""
