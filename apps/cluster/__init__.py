"""How a controller reaches the store that it shares with the other controllers of its fabric."""
