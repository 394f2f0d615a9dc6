"""The smallest changes of a document that change its prediction, and sets that guarantee it."""
