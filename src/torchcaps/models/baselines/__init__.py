"""Networks without capsules, with which capsule networks are compared."""
