"""Which member of a group is wrong, and what is normal for each series."""
