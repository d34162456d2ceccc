"""Runs Alembic on the connection, and inside the transaction, that Assay passes."""

from alembic import context

from scanner.store.rows.tables import METADATA

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True, compare_type=True)
with context.begin_transaction():
    context.run_migrations()
