"""Language models as detectors: a dataset of pictures, sounds or texts in, triage evaluation result rows out."""
