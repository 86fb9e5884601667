"""Charts as data, and the pictures drawn of them."""
