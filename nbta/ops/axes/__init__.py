"""What is computed along axes: sums, truths, orders, places, differences, diagonals."""
