"""The comparison of two stored scans: which scans, their findings, and the rules that differ."""
