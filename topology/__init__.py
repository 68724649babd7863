"""Fabric graphs: generators, files, link loads and live discovery. Pure; imports nothing of the project."""
