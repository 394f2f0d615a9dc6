"""The smallest changes of a document that change its prediction, and the smallest that keep it."""
