"""Parse trees of trained runs: a whole split analysed, the levels chosen, single images explained."""
