"""Snapshots: what a scan listed of a cluster, in one file that stands for the cluster in a later scan."""
