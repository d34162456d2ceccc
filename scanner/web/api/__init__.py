"""The JSON API under `/api/v1`: one table of endpoints (`routes.ENDPOINTS`) makes the routes and the OpenAPI document.

The fields of answers are those of the JSON report, of `assay runs -o json` and of `assay trend -o json`: the same functions make them.
"""
