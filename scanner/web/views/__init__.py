"""Finished scans in memory, as pages and the API need them: documents, lists of problems, and numbers of all clusters."""
