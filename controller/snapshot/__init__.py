"""Documents of a running controller, as those who follow it read them."""
