"""A second opinion: what another engine makes of the same expressions on a sample of the objects. It decides nothing."""
