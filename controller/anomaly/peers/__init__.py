"""Peer comparison: which of many equal members behaves unlike the rest, and for how long.

"Kasick et al." in docstrings is M. P. Kasick, P. Narasimhan, K. Harms, "Making problem diagnosis work for
large-scale, production storage systems", USENIX LISA 2013.
"""
