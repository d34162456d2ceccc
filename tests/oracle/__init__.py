"""What Kubernetes' own CEL says about an expression, and whether ours says the same."""
