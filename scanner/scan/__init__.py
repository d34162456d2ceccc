"""How a scan runs: prepare, list, evaluate in workers, record."""
