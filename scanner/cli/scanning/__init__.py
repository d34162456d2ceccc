"""What surrounds a scan: its input, the record of its run, fleets, interruption, metrics, notifications, and its end."""
