import os

from torchcaps.core import machine_memory


def test_a_machine_has_memory_where_the_system_tells_it():
    known = hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names
    assert (machine_memory() > 2**26) == known


def test_memory_that_the_system_does_not_tell_is_zero(monkeypatch):
    monkeypatch.setattr(os, "sysconf_names", {}, raising=False)
    assert machine_memory() == 0
