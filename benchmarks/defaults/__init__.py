"""How the classifier's defaults were chosen, on training documents alone."""
