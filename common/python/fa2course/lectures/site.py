"""The lectures as HTML in build/lectures, for those who read them in a browser without GitHub."""
import re
import shutil
from pathlib import Path

from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from . import notebooks
from ..launcher import paths

OUT = paths.BUILD / "lectures"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
       font: 16px/1.55 system-ui, sans-serif; }}
img {{ max-width: 100%; }} .anchor-link {{ display: none; }} table {{ border-collapse: collapse; }}
td, th {{ border: 1px solid #8886; padding: .25rem .6rem; text-align: left; }}
pre {{ overflow-x: auto; padding: .8rem; border: 1px solid #8886; font-size: 13px;
      line-height: 1.4; }}
</style>
<script>MathJax = {{ tex: {{ inlineMath: [["$", "$"]], displayMath: [["$$", "$$"]] }} }};</script>
<script async src="https://cdn.jsdelivr.net/npm/mathjax@3/es5/tex-chtml.js"></script>
</head><body><p><a href="index.html">All lectures</a></p>
{body}
</body></html>
"""


def title_of(text: str, fallback: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found.group(1) if found else fallback


def link(target: str) -> str:
    """Links between lectures lead to the pages made here, those to other files to the clone."""
    name, hash_sign, anchor = target.partition("#")
    if re.match(r"[a-z]+:|#|figures/", target) or not name:
        return target
    source = (notebooks.FOLDER / name).resolve()
    if source.parent == notebooks.FOLDER and source.suffix in (".md", ".ipynb"):
        return source.with_suffix(".html").name + hash_sign + anchor
    return source.as_uri()


def build() -> Path:
    """Writes the pages and returns the first one."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    shutil.copytree(notebooks.FOLDER / "figures", OUT / "figures")
    titles = {}
    for path in sorted(notebooks.FOLDER.glob("*.md")):
        text = re.sub(r"<!--.*?-->\n?", "", path.read_text(), flags=re.DOTALL)
        titles[path.stem] = title_of(text, path.stem)
        html = re.sub(r'href="([^"]+)"', lambda m: f'href="{link(m.group(1))}"',
                      markdown2html_mistune(text))
        (OUT / f"{path.stem}.html").write_text(PAGE.format(title=titles[path.stem], body=html))
    for path in sorted(notebooks.FOLDER.glob("*.ipynb")):
        html, _ = HTMLExporter(template_name="lab").from_filename(str(path))
        (OUT / f"{path.stem}.html").write_text(html)
        titles[path.stem] = path.stem.replace("_", " ") + " (notebook)"
    items = "\n".join(f'<li><a href="{name}.html">{title}</a></li>'
                      for name, title in titles.items())
    index = OUT / "index.html"
    index.write_text(PAGE.format(title="Lectures", body=f"<h1>Lectures</h1><ul>{items}</ul>"))
    return index
