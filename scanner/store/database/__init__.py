"""Connections to SQLite and PostgreSQL: addresses, transactions, errors, and the file of a SQLite database."""
