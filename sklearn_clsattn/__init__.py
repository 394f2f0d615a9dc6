"""Interpretable text classification with one ``<cls>`` attention layer, in scikit-learn's style."""

__version__ = "0.1.0"
