"""MutatingAdmissionPolicy: its manifests and bindings, and what its mutations do to a stored object."""
