"""The point-mass filter: moving and weighing a belief over places and headings."""
