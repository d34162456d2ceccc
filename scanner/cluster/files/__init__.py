"""Files that stand for a cluster: manifests as kubectl reads them, and test suites."""
