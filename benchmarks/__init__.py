"""Fit time, accuracy, calibration and memory against the classifiers that users would pick."""
