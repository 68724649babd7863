"""Policy discovery: which properties of resources are set together, where, and who deviates; tenants of an audit log.

"Jain and Frascadore" in docstrings is L. P. Jain, G. Frascadore, "Automatic Discovery of Configuration Policies",
VMware Technical Journal, 2014.
"""
