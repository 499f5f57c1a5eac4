"""Running detectors over corpora: items in, trials out."""
