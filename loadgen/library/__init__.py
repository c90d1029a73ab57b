"""The library: what a program calls, with errors and settings as a program has them."""
