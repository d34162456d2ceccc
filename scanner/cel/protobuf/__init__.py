"""The protobuf messages that expressions can make."""
