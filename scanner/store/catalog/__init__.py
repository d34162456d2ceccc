"""Clusters, scans and runs, and what scans share: rules, waivers, checks and places."""
