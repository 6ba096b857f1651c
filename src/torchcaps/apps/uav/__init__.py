"""Localization of unmanned aerial vehicles on orthophotos, without satellite navigation."""
