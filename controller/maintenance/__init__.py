"""Rolling maintenance: every switch of a fabric in turn, so that what is left carries everything."""
