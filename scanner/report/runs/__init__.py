"""The runs of `assay scan`: their register, the completeness sheet of each, and the trend of a cluster."""
