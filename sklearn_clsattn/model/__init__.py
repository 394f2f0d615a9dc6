"""The model: token bags, the attention objective, and what a fitted model is."""
