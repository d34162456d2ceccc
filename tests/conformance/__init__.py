"""Verdicts recorded from real servers, evaluated through the product's own engine."""
