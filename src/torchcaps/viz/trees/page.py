"""A parse tree as a piece of HTML: a capsule under the pointer shows its patch and couplings."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from torchcaps.parse import ParseTree, ReceptiveField

from .. import style
from ..markup import element, fill, read_template, to_script
from ..pictures import ArrayLike, to_array, to_colours, to_data_uri
from ..text import class_labels
from .arrange import arrange
from .facts import Fact, key_name, tree_facts
from .scene import Key, Scene, Shape, Stroke, Words

_PALETTE = ("PAPER", "INK", "MUTED", "LINE", "TILE", "COOL", "WARM", "WRONG")
_ANCHORS = {"left": "start", "center": "middle", "right": "end"}


def tree_markup(
    image: ArrayLike,
    tree: ParseTree,
    *,
    field: ReceptiveField | None = None,
    class_names: Sequence[str] | None = None,
    label: int | None = None,
    shares: ArrayLike | None = None,
    is_whole: bool = True,
) -> str:
    """HTML that draws the tree and answers to pointer and keyboard; it needs nothing beside itself.

    Args:
        image: (channels, height, width) or (height, width).
        tree: From `torchcaps.parse.parse_tree`.
        field: Where the capsules of the tree's grid look: the patch that a node shows.
        class_names: By default the class numbers.
        label: The true class, named beside the prediction.
        shares: What each child of the classes adds to the length of the chosen one, of that length.
        is_whole: Whether style and script come with it. A page of many trees holds them once: put into it
            later, a tree answers after a call of the script's `wakeTrees()`.
    """
    (colours,) = to_colours(image[None])
    names = class_labels(class_names, len(tree.class_activations))
    scene = arrange(tree, colours.shape, names, field=field, label=label)
    of_children = None if shares is None else to_array(shares)
    facts = tree_facts(tree, names, colours.shape, field=field, shares=of_children)
    drawn = fill(
        "tree_piece.html",
        palette=escape("; ".join(f"--tree-{name.lower()}: {getattr(style, name)}" for name in _PALETTE)),
        root=key_name((len(tree.layer_sizes) - 1, tree.chosen)),
        drawing=_svg(
            scene, to_data_uri(colours), colours.shape, facts, f"parse tree of {names[tree.chosen]}"
        ),
        title=escape(names[tree.chosen]),
        invitation=_invitation(tree, facts),
        warning=escape(scene.caption.warning),
        caption=escape(scene.caption.text),
        facts=to_script(facts),
    )
    if not is_whole:
        return drawn
    return fill("tree.html", style=read_template("tree.css"), tree=drawn, script=read_template("tree.js"))


def _invitation(tree: ParseTree, facts: dict[str, Fact]) -> str:
    """How large the tree is, what is drawn of it, and what a capsule under the pointer tells."""
    drawn, in_tree = len(tree.layer(0)), tree.capsules_in_tree[0]
    which = "capsules" if len(tree.layer_sizes) == 2 else "capsules of the first layer"
    words = f"{in_tree:,} of {tree.layer_sizes[0]:,} {which} {_be(in_tree)} in the tree"
    if drawn < in_tree:
        words += f"; the strongest {drawn:,} {_be(drawn)} drawn"
    if not tree.edges:
        return f"{words}."
    patch = "the patch it looks at, " if any("patch" in fact for fact in facts.values()) else ""
    return f"{words}. Point at one to see {patch}its activation and its couplings."


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _svg(scene: Scene, uri: str, shape: tuple[int, ...], facts: dict[str, Fact], words: str) -> str:
    (box,) = scene.pictures
    scale = f"translate({box[0]:.1f} {box[1]:.1f}) scale({box[2] / shape[1]:.5f} {box[3] / shape[0]:.5f})"
    picture = element("image", href=uri, width=shape[1], height=shape[0], transform=scale)
    return element(
        "svg",
        picture,
        *map(_path, scene.strokes),
        *_loose_marks(scene),
        *_capsules(scene, facts),
        viewBox=f"0 0 {scene.width} {scene.height:.0f}",
        role="group",  # as an image, its parts would not be read out
        aria_label=words,
    )


def _path(stroke: Stroke) -> str:
    points = [f"{x:.1f} {y:.1f}" for x, y in stroke.curve]
    return element(
        "path",
        d="M{} C{} {} {}".format(*points),
        data_of=_names(stroke.keys),
        stroke=stroke.colour,
        stroke_width=f"{stroke.width:.2f}",
        stroke_opacity=f"{stroke.alpha:.2f}",
    )


def _names(keys: Sequence[Key]) -> str:
    return " ".join(map(key_name, keys))


def _loose_marks(scene: Scene) -> list[str]:
    """Shapes and words that are not those of one capsule."""
    shapes = [shape for shape in scene.shapes if shape.kind not in ("capsule", "class")]
    return [*map(_rect, shapes), *(_text(words) for words in scene.words if words.key is None)]


def _capsules(scene: Scene, facts: dict[str, Fact]) -> list[str]:
    """A group for each capsule and class; those in the tree can be pointed at."""
    parts: dict[Key, list[str]] = {}
    for shape in scene.shapes:
        if shape.kind in ("capsule", "class"):
            parts.setdefault(shape.keys[0], []).append(_rect(shape))
    for words in scene.words:
        if words.key is not None:
            parts.setdefault(words.key, []).append(_text(words))
    groups = []
    for key, content in parts.items():
        name = key_name(key)
        if name in facts:
            about = f"{facts[name]['title']}: {facts[name]['text']}"
            told = {"role": "button", "tabindex": 0, "aria_label": about}
            group = element("g", *content, class_="node", data_key=name, **told)
        else:
            group = element("g", *content, class_="other", data_key=name)
        groups.append(group)
    return groups


def _rect(shape: Shape) -> str:
    left, top, width, height = (f"{value:.1f}" for value in shape.box)
    look = {"fill": shape.fill, "stroke": shape.edge, "stroke_width": shape.edge_width}
    if shape.is_dashed:
        look["stroke_dasharray"] = "6 4"
    return element(
        "rect",
        class_=shape.kind,
        data_of=_names(shape.keys),
        x=left,
        y=top,
        width=width,
        height=height,
        rx=f"{shape.radius:.1f}",
        **look,
    )


def _text(words: Words) -> str:
    x, y = words.place
    return element(
        "text",
        escape(words.text),
        x=f"{x:.1f}",
        y=f"{y:.1f}",
        font_size=words.size,
        fill=words.colour,
        font_weight=700 if words.is_bold else 400,
        text_anchor=_ANCHORS[words.align],
    )
