"""The process that serves: its sockets, its log, its probes, and the application."""
