"""Turn files into results by a protocol: `evaluate`."""
