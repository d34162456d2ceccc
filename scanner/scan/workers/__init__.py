"""Evaluation on several cores: processes evaluate raw pages, and their results return in the order of the pages."""
