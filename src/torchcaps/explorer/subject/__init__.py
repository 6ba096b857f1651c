"""What there is to see of a network's answer to a picture: looks, comparisons, and the words for them."""

from .reference import Reference
from .subject import Look, Subject
from .views import heat_uri, picture_uri, view_earlier, view_look, view_sheet, view_typical
from .words import say_rounded

__all__ = [
    "Look",
    "Reference",
    "Subject",
    "heat_uri",
    "picture_uri",
    "say_rounded",
    "view_earlier",
    "view_look",
    "view_sheet",
    "view_typical",
]
