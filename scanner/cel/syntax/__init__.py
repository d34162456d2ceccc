"""From text to a tree, and what is wrong with text that is none."""
