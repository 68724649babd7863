"""The tree algorithms: each module here has some by name, its `ALGORITHMS`, and all who offer algorithms find it."""
