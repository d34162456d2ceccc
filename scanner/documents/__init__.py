"""The files in which users write settings for Assay: waivers, mappings of controls, the configuration.

They are YAML or JSON. Every error names file, line and column, and nothing that is written in them is ignored.
"""
