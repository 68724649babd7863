"""Workflows: steps of actions over what queries find, with what earlier steps answered as input of later ones."""
