"""What there is to see of a network's answer to a picture: looks, comparisons, and the words for them."""

from .covering import Covering
from .reference import Reference
from .subject import Look, Subject
from .views import picture_uri, view_cover, view_earlier, view_look, view_sheet, view_typical
from .words import say_hardly, say_rounded

__all__ = [
    "Covering",
    "Look",
    "Reference",
    "Subject",
    "picture_uri",
    "say_hardly",
    "say_rounded",
    "view_cover",
    "view_earlier",
    "view_look",
    "view_sheet",
    "view_typical",
]
