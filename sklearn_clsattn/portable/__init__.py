"""Models outside of Python: a page that classifies and explains, and a JavaScript module."""
