"""Maps of one place on several dates, and crops of them as training images."""
