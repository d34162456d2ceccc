"""The steps of a scan: prepare, list, evaluate in workers, record."""
