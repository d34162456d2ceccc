"""Flags, environment variables and `assay.yaml`, resolved into one record with the source of every value.

A setting follows from a flag of `scan` or `report`: the flag gives the key of the file and the variable their names and their type.
"""
