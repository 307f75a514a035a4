"""A very small SVG writer. Every picture has its own background and two sets of colors, so that it
reads on a light and on a dark page. The text is the same on every machine: tests compare bytes."""
from xml.sax.saxutils import escape

# name: (light, dark)
COLORS = {
    "paper": ("#fbfbf9", "#15181c"), "ink": ("#22262b", "#e6e8ea"), "quiet": ("#5d646c", "#a2a9b1"),
    "faint": ("#d9dcdf", "#383d43"), "line": ("#9aa0a6", "#6d747c"),
    # Stages, as in the pictures of ./fa2 compare
    "s1": ("#8a8f98", "#9aa0a8"), "s2": ("#7b3294", "#c08ad6"), "s3": ("#2c6fbb", "#6ba8ea"),
    "s4": ("#1b9e77", "#3fc49b"), "s5": ("#c27c00", "#eba52e"), "s6": ("#c8322b", "#f0736c"),
    # Four warps
    "w0": ("#3b76b8", "#5b9be0"), "w1": ("#d98b00", "#e8a43a"), "w2": ("#2a9d74", "#45bd92"),
    "w3": ("#a5479c", "#cc7cc4"),
    # Memory spaces
    "global": ("#e9b5a5", "#8c4a38"), "shared": ("#f0dca0", "#7a6220"),
    "registers": ("#b5dcc3", "#2c6b47"),
}


def style() -> str:
    def rules(which: int) -> str:
        fills = "".join(f".{name}{{fill:{c[which]}}}" for name, c in COLORS.items())
        strokes = "".join(f".{name}-line{{stroke:{c[which]};fill:none}}"
                          for name, c in COLORS.items())
        return fills + strokes
    font = "text{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif}"
    return f"<style>{font}{rules(0)}@media (prefers-color-scheme:dark){{{rules(1)}}}</style>"


def number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


class Svg:
    def __init__(self, width: int, height: int, title: str, note: str = ""):
        """`title` stands above the picture, `note` (what was counted or measured, where) below."""
        self.width, self.height = width, height
        self.parts: list[str] = []
        self.description = title
        self.text(16, 28, title, size=17, weight="bold")
        for i, line in enumerate(reversed(note.splitlines())):
            self.text(16, height - 12 - 16 * i, line, size=12, color="quiet")

    def rect(self, x, y, w, h, color: str, line: str = "", rx: float = 2) -> None:
        kind = f'class="{color}"' if color else 'fill="none"'
        self.parts.append(f'<rect x="{number(x)}" y="{number(y)}" width="{number(w)}" '
                          f'height="{number(h)}" rx="{number(rx)}" {kind}/>')
        if line:
            self.parts.append(f'<rect x="{number(x)}" y="{number(y)}" width="{number(w)}" '
                              f'height="{number(h)}" rx="{number(rx)}" class="{line}-line"/>')

    def text(self, x, y, words: str, size: float = 13, color: str = "ink", anchor: str = "start",
             weight: str = "", turn: int = 0) -> None:
        extra = f' font-weight="{weight}"' if weight else ""
        extra += f' transform="rotate({turn} {number(x)} {number(y)})"' if turn else ""
        at = f' text-anchor="{anchor}"' if anchor != "start" else ""
        for i, line in enumerate(words.split("\n")):
            self.parts.append(f'<text x="{number(x)}" y="{number(y + i * size * 1.25)}" '
                              f'font-size="{number(size)}" class="{color}"{at}{extra}>'
                              f'{escape(line)}</text>')

    def line(self, points: list[tuple[float, float]], color: str = "line", width: float = 1.5,
             dash: str = "", arrow: bool = False) -> None:
        path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<polyline points="{path}" class="{color}-line" '
                          f'stroke-width="{number(width)}"{extra}/>')
        if arrow:
            (x0, y0), (x, y) = points[-2:]
            length = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5
            dx, dy = 7 * (x - x0) / length, 7 * (y - y0) / length
            head = [(x, y), (x - dx - dy / 2, y - dy + dx / 2), (x - dx + dy / 2, y - dy - dx / 2)]
            points_text = " ".join(f"{number(a)},{number(b)}" for a, b in head)
            self.parts.append(f'<polygon points="{points_text}" class="{color}"/>')

    def dot(self, x, y, color: str, r: float = 4) -> None:
        self.parts.append(f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(r)}" '
                          f'class="{color}"/>')

    def __str__(self) -> str:
        body = "\n".join(self.parts)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" role="img">\n'
                f"<title>{escape(self.description)}</title>\n{style()}\n"
                f'<rect width="{self.width}" height="{self.height}" class="paper"/>\n'
                f"{body}\n</svg>\n")
