"""Flags that several commands have, and what is behind them: a database, a connection, a scope, gates."""
