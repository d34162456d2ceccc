"""What the built-in admission plug-ins do with objects before policies read them: a file for what each changes and refuses.

`chain` runs them in the order of the API server, with the objects that they read.
"""

from scanner.preview.plugins.chain import BUILT_IN, DEFAULTS, LISTED, NAMED, SERVICE_ACCOUNT, Plugins, concerns_plugins

__all__ = ["BUILT_IN", "DEFAULTS", "LISTED", "NAMED", "SERVICE_ACCOUNT", "Plugins", "concerns_plugins"]
