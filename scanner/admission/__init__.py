"""What admission would decide: matching, params, the request, evaluation, and the budget of its cost."""
