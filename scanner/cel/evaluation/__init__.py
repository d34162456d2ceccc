"""From a checked tree to closures that evaluate exactly as kube-apiserver does."""
