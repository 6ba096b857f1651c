"""Pose: objects are rendered in known rotations, and networks learn to tell class and rotation."""
