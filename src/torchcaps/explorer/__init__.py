"""The explorer: one page that shows why a network gives an image its class.

The page is plain HTML, CSS and JavaScript from `templates/`, and the server is the standard library's. A
framework such as gradio would load scripts and fonts from other machines, would not work as a single file,
and would make a large dependency of a small page. Here the same page serves twice: `torchcaps app` answers it
on 127.0.0.1, and `torchcaps explain --explorer` puts the answers into it.
"""

from .as_file import write_explorer
from .given import read_given
from .server import Explorer
from .shelf import Shelf

__all__ = ["Explorer", "Shelf", "read_given", "write_explorer"]
