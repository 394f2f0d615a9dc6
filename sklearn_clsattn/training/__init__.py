"""Training regimes, one a file, and the optimiser they share."""
