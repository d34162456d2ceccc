"""Reads what reports, pages and metrics show of stored scans."""
