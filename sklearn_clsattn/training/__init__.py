"""The mathematics of training and prediction; nothing here is public."""
