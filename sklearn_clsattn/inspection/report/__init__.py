"""A whole model on one page."""
