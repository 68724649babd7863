"""Trees of many groups over a planned fabric, by the code that builds the live controller's trees."""
