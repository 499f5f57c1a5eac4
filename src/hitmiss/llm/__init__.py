"""Language models as detectors: a dataset of pictures, sounds or texts in, the triage document's result rows out."""
