"""Depth: layers of processes, and models that stack them."""
