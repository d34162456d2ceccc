"""Creates, upgrades, checks, prunes, renames and copies databases."""
