"""The commands, one file each; `catalog` has the settings that follow from their flags."""
