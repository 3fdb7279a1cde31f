"""The documents as tests read them: pages, their sections, and their blocks of code.

What a test does with a block stands behind its language:

    python runnable          runs in the test's process, in the order of the page
    python file=PATH         is that file of the reader's project
    python append=PATH       is added to that file
    console run              commands, each after "$ "; what is not is output they must show
    console run eventually   the same, repeated until the output is as printed
    console background       a command that stays until the page is over

In expected output, "…" stands for anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
FENCE = re.compile(r"^(?P<fence>`{3,})(?P<language>[\w{}-]*) ?(?P<words>[^\n]*)$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words behind it, and the line of the page before it."""

    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    def said(self, name: str) -> str:
        """Return what stands behind `name=`, or nothing."""
        found = [word for word in self.words if word.startswith(f"{name}=")]
        return found[0].removeprefix(f"{name}=") if found else ""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    found, open_block, lines = [], None, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        match = FENCE.match(line)
        if open_block is None and match:
            open_block, lines = (match, number), []
        elif open_block is not None and line.startswith(open_block[0]["fence"]):
            opening, at = open_block
            words = tuple(opening["words"].split())
            found.append(Block(page, at, opening["language"], words, "\n".join(lines) + "\n"))
            open_block = None
        else:
            lines.append(line)
    assert open_block is None, f"{page}: a block is not closed."
    return found


def sections(page: Path, level: int = 2) -> dict[str, str]:
    """Return the text under each heading of a level, without backticks in its title."""
    mark = "#" * level
    parts = re.split(rf"^{mark} +(.+)$", page.read_text(), flags=re.MULTILINE)
    titles = (title.replace("`", "").strip() for title in parts[1::2])
    return dict(zip(titles, parts[2::2], strict=True))


def rows(text: str) -> list[list[str]]:
    """Return the cells of every row of the tables in a text, without titles and rules."""
    found = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        is_title = number + 1 < len(lines) and re.fullmatch(r"\|[\s:|-]+\|", lines[number + 1])
        if line.startswith("|") and not is_title and not re.fullmatch(r"\|[\s:|-]+\|", line):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            found.append([cell.strip().replace("\\|", "|") for cell in cells])
    return found


def quoted(cell: str) -> list[str]:
    """Return what stands between backticks."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", cell)


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """Return each command of a console block, with the lines that it must show."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        elif line.strip():
            found[-1][1].append(line)
    return found


def missing(output: str, expected: list[str]) -> list[str]:
    """Return those of the expected lines that no line of an output is like."""
    lines = output.splitlines()
    return [line for line in expected if not any(pattern(line).search(one) for one in lines)]


def pattern(line: str) -> re.Pattern[str]:
    """Return what a line of expected output means: "…" is anything, a space any number of them."""
    pieces = (r"\s+".join(map(re.escape, piece.split())) for piece in line.split("…"))
    return re.compile(".*".join(pieces))
