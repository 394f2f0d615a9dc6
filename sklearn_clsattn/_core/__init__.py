"""The model, its loss, its solver and its fitted form: all that the default fit needs."""
