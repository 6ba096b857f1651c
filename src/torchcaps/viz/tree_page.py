"""The parse tree of an image as a piece of HTML: a node under the pointer shows its patch and couplings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from matplotlib.colors import to_hex
from numpy.typing import NDArray

from torchcaps.core.errors import UserError
from torchcaps.parse import Edge, Node, ParseTree, ReceptiveField

from .style import (
    COOL,
    COOL_MAP,
    INK,
    LINE,
    MUTED,
    PAPER,
    TILE,
    WARM,
    ArrayLike,
    class_labels,
    shorten,
    to_array,
    to_colour,
    to_data_uri,
    to_pictures,
)
from .tree_layout import (
    CLASS_COLUMN,
    HEIGHT,
    IMAGE,
    PILL,
    RIGHT,
    WIDTH,
    Point,
    TreeLayout,
    arrange_tree,
    arrival,
)

_STYLE = f"""<style>
.tree {{ display: grid; grid-template-columns: minmax(0, 1fr) 15rem; gap: 1rem; margin-top: 0.9rem; }}
@media (max-width: 52rem) {{ .tree {{ grid-template-columns: 1fr; }} }}
.tree > svg {{ width: 100%; height: auto; background: {PAPER}; border-radius: 0.6rem; color: {INK};
  font-family: inherit; }}
.tree image {{ image-rendering: pixelated; }}
.tree .node {{ cursor: pointer; outline: none; }}
.tree .node:focus-visible rect, .tree .node:hover rect {{ stroke: {INK}; stroke-width: 1.6; }}
.tree path, .tree .node, .tree .dot {{ transition: opacity 0.15s; }}
.tree.looking path, .tree.looking .node, .tree.looking .dot {{ opacity: 0.12; }}
.tree.looking .lit {{ opacity: 1 !important; }}
.tree aside {{ background: {TILE}; color: {INK}; border-radius: 0.6rem; padding: 0.9rem 1rem;
  font-size: 0.9rem; min-height: 16rem; }}
.tree aside h3 {{ margin: 0 0 0.2rem; font-size: 1rem; }}
.tree aside p {{ color: {MUTED}; margin: 0 0 0.6rem; }}
.tree aside svg {{ width: 7rem; height: 7rem; border-radius: 0.4rem; background: {PAPER}; display: block;
  margin-bottom: 0.6rem; }}
.tree .bar {{ display: grid; grid-template-columns: 5.2rem 1fr 2.4rem; gap: 0.4rem; align-items: center;
  font-variant-numeric: tabular-nums; }}
.tree .bar span:first-child {{ overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
.tree .bar i {{ display: block; height: 0.5rem; border-radius: 0.25rem; background: {COOL}; }}
.tree .bar.win i {{ background: {WARM}; }}
</style>"""

_SCRIPT = """<script>
(function () {
  const root = document.getElementById("NAME");
  const facts = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const panel = root.querySelector("aside"), quiet = panel.innerHTML;
  const make = (tag, text, into) => {
    const made = document.createElement(tag);
    made.textContent = text;
    into.append(made);
    return made;
  };
  const patch = (box) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", box.join(" "));
    svg.append(root.querySelector("image").cloneNode());
    svg.firstChild.removeAttribute("transform");
    panel.append(svg);
  };
  const bar = (row) => {
    const line = make("div", "", panel);
    line.className = row.wins ? "bar win" : "bar";
    make("span", row.name, line).title = row.name;
    make("i", "", line).style.width = Math.max(2, 100 * Math.min(1, row.value)) + "%";
    make("span", row.value.toFixed(2), line);
  };
  const look = (key) => {
    const fact = facts[key];
    panel.replaceChildren();
    make("h3", fact.title, panel);
    make("p", fact.text, panel);
    if (fact.patch) patch(fact.patch);
    if (fact.rows.length) make("p", fact.heading, panel);
    fact.rows.forEach(bar);
    root.classList.add("looking");
    root.querySelectorAll("[data-of]").forEach((part) =>
      part.classList.toggle("lit", part.dataset.of.split(" ").includes(key)));
  };
  const leave = () => { root.classList.remove("looking"); panel.innerHTML = quiet; };
  root.querySelectorAll(".node").forEach((node) => {
    node.addEventListener("pointerenter", () => look(node.dataset.key));
    node.addEventListener("focus", () => look(node.dataset.key));
    node.addEventListener("pointerleave", leave);
    node.addEventListener("blur", leave);
  });
})();
</script>"""


def tree_markup(
    image: ArrayLike,
    tree: ParseTree,
    *,
    field: ReceptiveField | None = None,
    class_names: Sequence[str] | None = None,
    shares: ArrayLike | None = None,
    name: str = "tree",
) -> str:
    """HTML that draws the tree and answers to pointer and keyboard; it needs nothing beside itself.

    Args:
        image: (channels, height, width) or (height, width).
        tree: From `torchcaps.parse.parse_tree`.
        field: Where the capsules of the tree's grid look: the patch that a node shows.
        class_names: By default the class numbers.
        shares: What each child of the classes adds to the length of the chosen one, of that length.
        name: Of the element on its page; two trees of one page need different ones.
    """
    picture = to_pictures(image[None])[0]
    names = class_labels(class_names, len(tree.class_activations))
    layout = arrange_tree(tree, picture.shape, field)
    facts = {_key(node): _fact(node, tree, names, field, picture.shape) for node in tree.nodes}
    if shares is not None:
        _add_shares(facts, tree, names[tree.chosen], to_array(shares))
    parts = [
        _image(to_data_uri(to_colour(picture, picture.ndim == 2)), picture.shape),
        *_lines(tree, layout),
        *(_dot(key, layout) for key in layout.dots),
        *(
            _capsule(node, layout, facts)
            for node in tree.nodes
            if (node.layer, node.index) in layout.capsules
        ),
        *(_class(number, y, tree, names) for number, y in layout.classes.items()),
    ]
    data = json.dumps(facts, allow_nan=False).replace("<", "\\u003c")
    chosen = escape(names[tree.chosen])
    return (
        f'{_STYLE}<div class="tree" id="{escape(name)}">'
        f'<svg viewBox="0 70 {WIDTH} {HEIGHT - 110}" role="img" aria-label="parse tree of {chosen}">'
        f"{''.join(parts)}</svg><aside><h3>{chosen}</h3><p>{_invitation(tree, facts)}</p></aside>"
        f'<script type="application/json">{data}</script></div>{_SCRIPT.replace("NAME", escape(name))}'
    )


def _lines(tree: ParseTree, layout: TreeLayout) -> list[str]:
    """From the image to the capsules and on to the classes, the strongest couplings on top."""
    return [
        *(_link(key, layout) for key in layout.dots),
        *(_edge(edge, tree, layout, is_winning=False) for edge in tree.alternatives),
        *(_edge(edge, tree, layout, is_winning=True) for edge in reversed(tree.edges)),
    ]


def _invitation(tree: ParseTree, facts: dict[str, dict[str, Any]]) -> str:
    """How large the tree is, what is drawn of it, and what a capsule under the pointer tells."""
    drawn, in_tree = len(tree.layer(0)), tree.capsules_in_tree[0]
    which = "capsules" if len(tree.layer_sizes) == 2 else "capsules of the first layer"
    words = f"{in_tree:,} of {tree.layer_sizes[0]:,} {which} are in the tree"
    if drawn < in_tree:
        words += f"; the strongest {drawn:,} are drawn"
    if not tree.edges:
        return f"{words}."
    patch = "the patch it looks at, " if any(fact["patch"] for fact in facts.values()) else ""
    return f"{words}. Point at one to see {patch}its activation and its couplings."


def _key(node: Node) -> str:
    return f"{node.layer}-{node.index}"


def _fact(
    node: Node, tree: ParseTree, names: list[str], field: ReceptiveField | None, shape: tuple[int, ...]
) -> dict[str, Any]:
    """What the panel says of a capsule."""
    last = len(tree.layer_sizes) - 1
    above = [e for e in (*tree.edges, *tree.alternatives) if (e.layer, e.child) == (node.layer, node.index)]
    below = [e for e in tree.edges if (e.layer + 1, e.parent) == (node.layer, node.index)]
    is_class = node.layer == last
    shown = below[:8] if is_class else sorted(above, key=lambda edge: -edge.coupling)[:8]
    rows = [
        {
            "name": f"capsule {edge.child}" if is_class else _parent_name(edge, names, last),
            "value": round(edge.coupling, 4),
            "wins": edge in tree.edges,
        }
        for edge in shown
    ]
    place = "" if node.position is None else "Row {}, column {}, type {}. ".format(*node.position)
    return {
        "title": names[node.index] if is_class else f"Capsule {node.index}",
        "text": f"{place}Activation {node.activation:.3f}.",
        "heading": "Strongest children" if is_class else "Couplings above the threshold",
        "patch": None if field is None or node.position is None else _patch(node.position, field, shape),
        "rows": rows,
    }


def _add_shares(
    facts: dict[str, dict[str, Any]], tree: ParseTree, name: str, shares: NDArray[np.float64]
) -> None:
    """Let the children of the classes say what they add to the chosen one."""
    last = len(tree.layer_sizes) - 2
    if shares.shape != (tree.layer_sizes[last],):
        raise UserError(f"{tree.layer_sizes[last]} capsules vote for classes, got shares {shares.shape}")
    for node in tree.layer(last):
        facts[_key(node)]["text"] += f" It adds {shares[node.index]:+z.1%} to the length of {name}."


def _parent_name(edge: Edge, names: list[str], last: int) -> str:
    return names[edge.parent] if edge.layer + 1 == last else f"capsule {edge.parent}"


def _patch(position: tuple[int, int, int], field: ReceptiveField, shape: tuple[int, ...]) -> list[float]:
    """Left, top, width and height of what a capsule sees, in pixels from the edge of the image."""
    spans = []
    row, column, _ = position
    for centre, pixels in zip(reversed(field.centre(row, column)), (shape[1], shape[0]), strict=True):
        middle = centre + 0.5
        start, end = max(middle - field.size / 2, 0), min(middle + field.size / 2, pixels)
        spans.append((start, max(end - start, 1)))
    (left, width), (top, height) = spans
    return [left, top, width, height]


def _image(uri: str, shape: tuple[int, ...]) -> str:
    left, top, side = IMAGE
    scale = f"translate({left} {top}) scale({side / shape[1]:.5f} {side / shape[0]:.5f})"
    return f'<image href="{uri}" width="{shape[1]}" height="{shape[0]}" transform="{scale}"/>'


def _curve(start: Point, end: Point) -> str:
    bend = 0.5 * (end[0] - start[0])
    points = (start, (start[0] + bend, start[1]), (end[0] - bend, end[1]), end)
    return "M{} C{} {} {}".format(*(f"{x:.1f} {y:.1f}" for x, y in points))


def _path(curve: str, colour: str, width: float, opacity: float, of: str) -> str:
    return (
        f'<path d="{curve}" data-of="{of}" fill="none" stroke="{colour}" stroke-width="{width:.2f}" '
        f'stroke-opacity="{opacity:.2f}" stroke-linecap="round"/>'
    )


def _link(key: tuple[int, int], layout: TreeLayout) -> str:
    x, y = layout.capsules[key]
    return _path(_curve(layout.dots[key], (x - PILL / 2, y)), COOL, 0.7, 0.25, f"{key[0]}-{key[1]}")


def _edge(edge: Edge, tree: ParseTree, layout: TreeLayout, *, is_winning: bool) -> str:
    end = arrival(edge, tree, layout)
    if end is None:
        return ""
    x, y = layout.capsules[edge.layer, edge.child]
    strength = min(max(edge.coupling, 0.0), 1.0)
    of = f"{edge.layer}-{edge.child} {edge.layer + 1}-{edge.parent}"
    curve = _curve((x + PILL / 2, y), end)
    if is_winning:
        return _path(curve, WARM, 0.6 + 3 * strength, 0.25 + 0.6 * strength, of)
    return _path(curve, COOL, 0.5 + 2.2 * strength, 0.18 + 0.4 * strength, of)


def _dot(key: tuple[int, int], layout: TreeLayout) -> str:
    x, y = layout.dots[key]
    return (
        f'<circle class="dot" data-of="{key[0]}-{key[1]}" cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{WARM}" '
        f'fill-opacity="0.7" stroke="{PAPER}"/>'
    )


def _capsule(node: Node, layout: TreeLayout, facts: dict[str, dict[str, Any]]) -> str:
    x, y = layout.capsules[node.layer, node.index]
    height = min(14.0, 0.78 * layout.row_height)
    colour = to_hex(COOL_MAP(float(np.clip(node.activation, 0, 1))))
    key = _key(node)
    title = f"{facts[key]['title']}: {facts[key]['text']}"
    return (
        f'<g class="node" tabindex="0" data-key="{key}" data-of="{key}" aria-label="{escape(title)}">'
        f'<rect x="{x - PILL / 2:.1f}" y="{y - height / 2:.1f}" width="{PILL}" height="{height:.1f}" '
        f'rx="{height / 2:.1f}" fill="{colour}" stroke="{PAPER}"/></g>'
    )


def _class(number: int, y: float, tree: ParseTree, names: list[str]) -> str:
    length, is_chosen = tree.class_activations[number], number == tree.chosen
    key = f"{len(tree.layer_sizes) - 1}-{number}"
    colour, ink, weight = (WARM, INK, 700) if is_chosen else ("#b9c0e4", MUTED, 400)
    start = CLASS_COLUMN + 102
    room = RIGHT - 42 - start
    filled = max(room * min(max(length, 0.0), 1.0), 5)
    hover = f'class="node" tabindex="0" data-key="{key}"' if is_chosen else 'class="other"'
    return (
        f'<g {hover} data-of="{key}" font-size="13" font-weight="{weight}" fill="{ink}">'
        f'<circle cx="{CLASS_COLUMN}" cy="{y:.1f}" r="{5 if is_chosen else 3}" fill="{colour}"/>'
        f'<text x="{CLASS_COLUMN + 12}" y="{y + 4.5:.1f}">{escape(shorten(names[number], 11))}</text>'
        f'<rect x="{start}" y="{y - 5:.1f}" width="{room}" height="10" rx="5" fill="{LINE}"/>'
        f'<rect x="{start}" y="{y - 5:.1f}" width="{filled:.1f}" height="10" '
        f'rx="5" fill="{colour}"/>'
        f'<text x="{RIGHT}" y="{y + 4.5:.1f}" text-anchor="end">{length:.2f}</text></g>'
    )
