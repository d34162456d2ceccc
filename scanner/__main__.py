"""`python -m scanner` is the command `assay`."""

from scanner.cli import main

main()
