"""Perturbations of items: manipulations, codecs, attacks."""
