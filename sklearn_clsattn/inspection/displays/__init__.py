"""Pictures of a model, in the manner of scikit-learn's displays."""
