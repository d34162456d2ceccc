"""Read-only pages and an API over the store, for auditors: `assay serve`.

Nothing of it is imported by a scan. `server.application` makes the application from `pages` and `api`, `server.server` runs it
behind `access`. A page is made of `views`, which keep finished scans in memory; `requests` has what a request may ask.
"""
