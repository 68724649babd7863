"""The performance manager: polls, decoded counters, rates, histograms, thresholds."""
