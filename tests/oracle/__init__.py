"""The comparison of our CEL with Kubernetes' own."""
