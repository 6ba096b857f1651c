"""Applications: from the files of a field to the pictures its people read."""
