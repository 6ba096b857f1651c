"""A run becomes a pretrained network: its files, without paths of a machine, and its card."""
