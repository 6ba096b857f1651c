"""The help of a command without parsing its line: the parser imports pydantic, which takes longer."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from typer.core import TyperGroup
from typer.main import get_command

_HELP = ("-h", "--help")


def help_of(app: typer.Typer, arguments: Sequence[str]) -> str | None:
    """The help that names of commands followed by --help ask for; None leaves the line to the parser."""
    if not arguments or arguments[-1] not in _HELP:
        return None
    command = get_command(app)
    context = command.context_class(command, info_name=app.info.name, **command.context_settings)
    for name in arguments[:-1]:
        found = command.get_command(context, name) if isinstance(command, TyperGroup) else None
        if found is None:
            return None
        command, context = found, found.context_class(found, info_name=name, parent=context)
    return command.get_help(context)
