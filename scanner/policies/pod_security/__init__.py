"""Pod Security admission as a policy language: what the labels of namespaces demand of pods and of the templates of workloads."""
