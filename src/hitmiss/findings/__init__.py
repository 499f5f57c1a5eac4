"""Sentences: the catalogue of findings, and how each output writes them."""
