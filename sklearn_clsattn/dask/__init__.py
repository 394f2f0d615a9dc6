"""Training on the workers of a Dask cluster, and lazy predictions for Dask collections."""

try:
    import dask.array
    import distributed
except ImportError as error:
    raise ImportError(
        'sklearn_clsattn.dask needs Dask: pip install "sklearn-clsattn[dask]".'
    ) from error

from ._classifier import DaskClsAttentionClassifier

__all__ = ["DaskClsAttentionClassifier"]

del dask, distributed
