"""Flow entries: compiled from trees, lowered to OpenFlow 1.0 and 1.3, reconciled with switches."""
