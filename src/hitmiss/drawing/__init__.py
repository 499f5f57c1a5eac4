"""Pictures with matplotlib, from numbers alone."""
