"""Tests of second opinions."""
