"""Tests of previews, part by part."""
