"""Tells other systems what a scan found. A failure here never changes the result of a scan."""
