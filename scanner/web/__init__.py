"""Read-only pages and an API over the store, for auditors: `assay serve`.

Nothing of it is imported by a scan. `application.application` makes the application, `server.serve` runs it.
"""
