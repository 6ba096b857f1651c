"""What this machine has."""

from __future__ import annotations

import os


def machine_memory() -> int:
    """Bytes of memory in this machine; 0 where the system does not tell."""
    names = ("SC_PAGE_SIZE", "SC_PHYS_PAGES")
    if not hasattr(os, "sysconf") or any(name not in os.sysconf_names for name in names):
        return 0
    return os.sysconf(names[0]) * os.sysconf(names[1])
