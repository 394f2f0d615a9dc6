"""The paper's figures and tables, made again: one script each, and the page that they write."""
