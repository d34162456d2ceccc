"""Scans in real databases: SQLite always, PostgreSQL where one is offered."""
