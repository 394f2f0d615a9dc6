"""How explanations look: HTML and text for terminals."""
