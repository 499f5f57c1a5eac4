"""Run detectors over corpora: items in, trials out."""
