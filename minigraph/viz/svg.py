"""From an engine's SVG to ours: alone on its page or among others, in light and dark, and readable.

The result refers to nothing outside itself, runs nothing, and has an id of its own for every part.
"""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from .palette import DIM, DIM_DARK, dark_colours
from .picture import Picture

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
FONTS = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, "Courier New", monospace'


def finish(output: bytes, picture: Picture, *, prefix: str, theme: str) -> str:
    """The standalone SVG.

    Args:
        output: what the engine wrote; its ids begin with `mg`.
        picture: what was drawn.
        prefix: of all ids, instead of `mg`.
        theme: "light", "dark", or "auto" for a style that follows the reader's system.
    """
    root = ElementTree.fromstring(output)
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        name = element.get("id")
        if name is not None:
            element.set("id", prefix + name.removeprefix("mg"))
        if element.tag == "text":
            element.attrib.pop("font-family", None)
    for group in root.iter("g"):
        tidy(group)
    roles = {
        f"{prefix}-{box.name}": [line.role for line in box.lines] for box in picture.root.boxes()
    }
    for group in root.iter("g"):
        wanted = roles.get(group.get("id", ""), [])
        if group.get("class") == "graph minigraph":
            wanted = ["strong", "dim"]
        emphasise(group, wanted, DIM_DARK if theme == "dark" else DIM)
    head(root, picture, prefix)
    if theme == "auto":
        root.insert(2, style(prefix))
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def tidy(group: Element) -> None:
    """The tooltip becomes the title (browsers show it, readers read it); links are unwrapped."""
    title = ""
    children: list[Element] = []
    for child in group:
        if child.tag == "title":
            continue
        link = child.find("a") if child.tag == "g" else None
        if link is None:
            children.append(child)
            continue
        title = title or link.get(XLINK + "title", "")
        children.extend(link)
    group[:] = children
    if title:
        element = Element("title")
        element.text = title
        group.insert(0, element)
    group.text = None
    for child in group:
        child.tail = None


def emphasise(group: Element, roles: list[str], dim: str) -> None:
    """Bold, dim and struck lines: all letters of the font are equally wide, so nothing moves."""
    texts = [child for child in group if child.tag == "text"]
    for element, role in zip(texts, roles, strict=False):
        if role in ("strong", "struck"):
            element.set("font-weight", "bold")
        if role == "struck":
            element.set("text-decoration", "line-through")
        if role == "dim":
            element.set("fill", dim.lower())


def head(root: Element, picture: Picture, prefix: str) -> None:
    """What the picture is, for those who do not see it; its size, never wider than the page."""
    title, description = (
        Element("title", id=f"{prefix}-title"),
        Element("desc", id=f"{prefix}-desc"),
    )
    title.text = picture.title
    description.text = f"{picture.description} {picture.note}".strip()
    root[:0] = [title, description]
    root.set("xmlns", SVG[1:-1])
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}-title {prefix}-desc")
    root.set("id", f"{prefix}-svg")
    root.set("font-family", FONTS)
    root.set("style", "max-width:100%;height:auto")
    root.text = root.tail = None
    for child in root:
        child.tail = None


def style(prefix: str) -> Element:
    """The dark theme: each light colour has one dark one, within this drawing only."""
    rules = [
        f'#{prefix}-svg [{attribute}="{light.lower()}"]{{{attribute}:{dark.lower()}}}'
        for light, dark in dark_colours().items()
        for attribute in ("fill", "stroke")
    ]
    element = Element("style")
    element.text = f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}"
    return element
