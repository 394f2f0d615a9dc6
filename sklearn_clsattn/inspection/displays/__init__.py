"""Plots of fitted models, one display a file, as in scikit-learn."""
