"""Recording of verdicts from the API server of the integration tests, in the form of the files in `recorded/`."""
