"""The edge to Kubernetes: a live cluster over HTTP, or a folder of manifests that stands for one."""
