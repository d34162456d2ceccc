"""Evidence that another person can check: samples that a rule draws, packets of their items, and verdicts that are made again."""
