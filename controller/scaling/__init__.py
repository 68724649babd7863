"""How many members each tier of a pool should have: learners, rules that learn nothing, and what they go by."""
