"""The decisions of admission: matching, params, the request, evaluation, and the cost budget."""
