"""Runs that need everything below: the demonstration, and the tables of the thesis."""
