"""The functions that users call on graphs and on functions of their own."""
