"""Commands that train: a key of the recipe given as an option is answered with how to set it."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class RecipeCommand(TyperCommand):
    """A command with `--set`, where many look for `--epochs` and `--batch-size` first."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; an unknown option is an error that names `--set`."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = getattr(error, "option_name", "")
            # by its name: typer brings a click of its own, or takes the installed one
            if option.startswith("--") and type(error).__name__ == "NoSuchOption":
                error.message += f". {self._hint(option)}"  # type: ignore[attr-defined]
            raise

    def _hint(self, option: str) -> str:
        key = option.strip("-").replace("-", "_")
        if key != "recipe":
            return f"A key of the recipe is set by --set {key}=VALUE"
        takes_one = any(each.name == "recipe" for each in self.params)
        return "A recipe is an argument, without an option" if takes_one else "Its recipe is named by --model"
