"""The paper of one control: what a period showed about it, for the file of an audit."""
