"""What `assay check` prints: the verdict about each manifest, as data first, then one file for each format."""
