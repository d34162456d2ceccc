"""MutatingAdmissionPolicy: its manifests and bindings, and the effect of its mutations on a stored object."""
