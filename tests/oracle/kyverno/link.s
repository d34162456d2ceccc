// The compiler accepts functions without a body, which are linked, only in packages with an assembly file.
