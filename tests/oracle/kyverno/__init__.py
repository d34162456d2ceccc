"""Compares Kyverno's policies with the programs that are linked with Kyverno's own code; the Go files here are those programs."""
