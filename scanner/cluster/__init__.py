"""The edge to Kubernetes: a live cluster over HTTP, or manifests that stand for a cluster."""
