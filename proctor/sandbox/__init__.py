"""Disposable Linux sandboxes with processes, a persistent shell and limits of resources, by Docker or namespaces."""
