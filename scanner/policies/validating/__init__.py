"""ValidatingAdmissionPolicy: its manifests and bindings."""
