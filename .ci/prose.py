#!/usr/bin/env python3
"""Checks the language of the documentation and of what the program prints.

``prose.py`` checks the user documentation (lines, sentences, phrases, headings) and the sentences
of the command line's help, the studio's templates, docstrings, and messages in the code (sentences
and phrases). ``prose.py FILE ...`` checks pages alone. Both print ``place: problem`` and exit with
1 if there is any.

``prose.py --sentences 60 --seed 1`` prints sentences for a reader who has not seen the code: a
quarter each from the documentation, the command line's help, the studio and public docstrings.
"""

from __future__ import annotations

import argparse
import ast
import gc
import html
import itertools
import random
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST_LINE = 100  # characters
LONGEST_SENTENCE = 40  # words
SHORTEST_DRAWN = 5  # words; what is shorter is a label

#: expression for what "Writing" in CONTRIBUTING.md advises against: what to write
PHRASES = {
    r"t(?:ak(?:e|es|en|ing)|ook) home": "export",
    r"(?:go|goes|going|went) on": "resumes, continues",
    r"begun|begins? (?:a|an|the)|(?:crawl|command|program|run|studio)s? beg[ia]ns?": "start",
    r"left (?:alone|in peace)": "skipped; of a host for a while: backed off",
    r"(?:be|been|is|are|was|were) told(?! apart)": "reported, logged, given",
    r"(?:say|says|said) so": "reports this, logs this",
    r"before a night is spent": "before a long crawl",
    r"from little": "from a few examples",
    r"under way": "in progress",
    r"waits? for nobody": "the reason: a recording, no delays",
    r"who(?:so)?ever": "anybody who",
    r"(?:has|have|had) (?:a|the|its|your) \w+ (?:follow|made)": "apply, create",
    # in a formula it is fine
    r"(?:by|from|high|its|of|the|their|true|with) (?-i:R)(?!\w|\()": "relevance",
    r"(?-i:R)(?= ?[<>≤≥])": "relevance",
}
_PHRASES = {re.compile(rf"(?i)\b(?:{p})"): instead for p, instead in PHRASES.items()}
_CODE = re.compile(r"(`+)(?!`)(.+?)\1", re.DOTALL)
_ITALICS = re.compile(r"\*[^*\s][^*]*\*")  # titles, and what the studio shows
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)")
_ONE_LINK = re.compile(r"\s*(?:[-*]|\d+\.)?\s*(?:!?\[[^\]]*\]\([^)]*\)|<?https?://\S+)[.,;]?")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
_END = re.compile(r"(?<=[.!?])(?<!\.\.)[\"')*]*\s+(?=[\"'(*`\[]*[A-Z0-9`])")
_NUMPYDOC = re.compile(r"\n[A-Z][\w ]+\n---+\n")
_EXAMPLES = re.compile(r"(?m)^\x08\n(?:.*\S.*\n?)*")  # click: a paragraph of commands
_Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_SHOWN_WORD = re.compile(  # a term of the glossary, or the plural of a word
    r'\{\{ *(?:term\("[^"]*", "([^"]*)"\)|term\("([^"]*)"\)'
    r'|"[^"]*" if [^{}]* == 1 else "([^"]*)") *\}\}'
)
_INLINE = re.compile(r"</?(?:a|b|bdi|code|em|i|span|strong)\b[^>]*>")


def documents() -> list[Path]:
    """Return the pages for users; those of research quote studies and papers."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    root = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return root + [page for page in pages if ROOT / "docs" / "research" not in page.parents]


def blocks(text: str) -> Iterator[tuple[str, int, str]]:
    """Split Markdown into "prose" (paragraphs, items), "table" (rows), "heading" and "code".

    Yields each with the number of its first line.
    """
    kind, start, fence, lines = "", 0, "", list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        bare = line.strip()
        if fence or bare.startswith("```"):
            now = "code"
            marks = bare[: len(bare) - len(bare.lstrip("`"))]
            fence = "" if fence and bare == fence else fence or marks
        elif bare.startswith(":::") or (re.match(" {4}(?! *[-*] )", line) and kind != "prose"):
            now = "code"
        elif not bare or bare.startswith("<"):
            now = ""
        else:
            now = "table" if bare[0] == "|" else "heading" if re.match("#+ ", line) else "prose"
        if lines and (now != "prose" or kind != "prose" or _ITEM.match(line)):
            yield kind, start, "\n".join(lines)
            lines = []
        if now:
            start = start if lines else number
            lines.append(line)
        kind = now


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Return the sentences of a block, each with the number of lines above; of links the text."""
    item = _ITEM.match(text)
    text = _LINK.sub(r"\1", text[item.end() if item else 0 :]).replace("**", "")
    at = 0
    for end in [*(match.end() for match in _END.finditer(text)), len(text)]:
        yield text.count("\n", 0, at), " ".join(text[at:end].split())
        at = end


def check(text: str) -> Iterator[tuple[int, str]]:
    """Return the line and the description of each problem of a page."""
    level = 0
    for kind, start, block in blocks(text):
        if kind == "code":
            continue
        for number, line in enumerate(block.split("\n"), start):
            if kind != "table" and len(line) > LONGEST_LINE and not _ONE_LINK.fullmatch(line):
                yield number, f"line of {len(line)} characters, {LONGEST_LINE} at most"
        if kind == "heading":
            marks = len(block) - len(block.lstrip("#"))
            if marks > level + 1:
                yield start, f"heading of level {marks} after level {level}"
            if block.rstrip()[-1] in ".,:;!?":
                yield start, "heading that ends in punctuation"
            level = marks
        for above, sentence in sentences(block):
            for problem in check_sentence(sentence, any_length=kind != "prose"):
                yield start + above, problem


def check_sentence(sentence: str, *, any_length: bool = False) -> Iterator[str]:
    """Return the description of each problem of a sentence."""
    plain = _CODE.sub("code", sentence)
    words = len(re.findall(r"\S*\w\S*", plain))
    if words > LONGEST_SENTENCE and not any_length:
        yield f"sentence of {words} words, {LONGEST_SENTENCE} at most"
    for phrase, instead in _PHRASES.items():
        for match in phrase.finditer(_ITALICS.sub("name", plain)):
            yield f"“{match[0]}”, better: {instead}"


def of_documentation() -> Iterator[tuple[str, str]]:
    """Return where each sentence of the documentation is, and the sentence."""
    for page in documents():
        for kind, start, block in blocks(page.read_text("utf-8")):
            for above, sentence in sentences(block) if kind == "prose" else ():
                yield f"{page.relative_to(ROOT)}:{start + above}", sentence


def of_help() -> Iterator[tuple[str, str]]:
    """Return the sentences of ``--help`` of every command, and of the arguments of a crawl."""
    import click  # noqa: PLC0415 - the check itself needs the standard library only

    from focuscrawl.cli.main import main as program  # noqa: PLC0415
    from focuscrawl.crawl_config import argument_help  # noqa: PLC0415

    arguments = re.split(r"^  (?=-a )", argument_help(), flags=re.MULTILINE)
    texts = [("focuscrawl crawl --help", each) for each in arguments]
    commands: list[tuple[str, click.Command]] = [("focuscrawl", program)]
    for name, command in commands:  # grows meanwhile
        texts += [(f"{name} --help", each) for each in (command.help or "").split("\n\n")]
        options = [each for each in command.params if isinstance(each, click.Option)]
        texts += [(f"{name} {each.opts[0]}", each.help or "") for each in options]
        if isinstance(command, click.Group):
            context = click.Context(command)
            names = command.list_commands(context)
            found = [(each, command.get_command(context, each)) for each in names]
            commands += [(f"{name} {each}", it) for each, it in found if it]
    for source, text in texts:
        if "\b" not in text:  # it marks examples
            yield from ((source, sentence) for _, sentence in sentences(text))


def of_studio() -> Iterator[tuple[str, str]]:
    """Return the sentences that the studio's templates show; “…” is what is filled in."""
    for page in sorted((ROOT / "focuscrawl" / "studio" / "templates").glob("*.j2")):
        text = re.sub(r"(?s)\{#.*?#\}|<(script|style)\b.*?</\1>", "", page.read_text("utf-8"))
        text = _SHOWN_WORD.sub(lambda match: match[1] or match[2] or match[3], text)
        text = re.sub(r'\{%-? *(?:el(?:se|if)|call)\b.*?%\}|(?=<a class="button)', "<br>", text)
        text = re.sub(r"(?s)\{\{.*?\}\}", "…", text)
        text = _INLINE.sub("", re.sub(r"(?s)\{%.*?%\}", "", text))
        for piece in re.split(r"<[^>]*>|\n\n", text):
            for _, sentence in sentences(html.unescape(piece)):
                yield str(page.relative_to(ROOT)), sentence


def of_docstrings(*, private: bool = False) -> Iterator[tuple[str, str]]:
    """Return the sentences of public docstrings, without numpydoc sections and examples."""
    definitions = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in sorted((ROOT / "focuscrawl").rglob("*.py")):
        module = _parse(path)
        nodes: list[tuple[str, _Definition]] = [("", module)]
        for name, node in nodes:  # grows meanwhile
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = (each for each in node.body if isinstance(each, definitions))
                nodes += [(f"{name}.{each.name}".lstrip("."), each) for each in inner]
            if getattr(node, "name", "").startswith("_") and not private:
                continue
            source = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)} {name}".rstrip()
            text = _EXAMPLES.sub("", _NUMPYDOC.split(ast.get_docstring(node) or "")[0])
            for kind, _, block in blocks(text):
                for _, sentence in sentences(block) if kind == "prose" else ():
                    yield source, sentence


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def of_messages() -> Iterator[tuple[str, str]]:
    """Return the sentences of other texts in the code; “…” is what is filled in."""
    for path in sorted((ROOT / "focuscrawl").rglob("*.py")):
        nodes = list(ast.walk(_parse(path)))
        inside = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        inside |= {id(e) for node in nodes if isinstance(node, ast.JoinedStr) for e in node.values}
        for node in nodes:
            text = _text(node) if id(node) not in inside else ""
            is_data = text.count("\n") > 2  # SQL, styles, lists of words
            if len(re.findall(r"[A-Za-z]{2,}", text)) >= SHORTEST_DRAWN and not is_data:
                for _, sentence in sentences(text):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", sentence  # type: ignore[attr-defined]


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each) or "…" for each in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def check_strings() -> list[str]:
    """Return the problems of help, templates, docstrings and messages, each with its place."""
    kinds = (of_help(), of_studio(), of_docstrings(private=True), of_messages())
    return [
        f"{source}: {problem}"
        for source, sentence in itertools.chain(*kinds)
        for problem in check_sentence(sentence)
    ]


def draw(count: int, seed: int) -> list[tuple[str, str]]:
    """Return sentences drawn at random, of each kind as many, and where they are from."""
    numbers = random.Random(seed)
    drawn: list[tuple[str, str]] = []
    kinds = (of_documentation, of_help, of_studio, of_docstrings)
    for at, kind in enumerate(kinds):
        by_text = {text: source for source, text in kind()}
        texts = [
            each for each in by_text if len(re.findall(r"[A-Za-z]\S*", each)) >= SHORTEST_DRAWN
        ]
        sample = numbers.sample(texts, len(range(at, count, len(kinds))))
        drawn += [(by_text[text], text) for text in sample]
    numbers.shuffle(drawn)
    return drawn


def main() -> int:
    """Check pages, or print sentences."""
    gc.disable()  # the syntax trees stay
    parser = argparse.ArgumentParser(description="Check the language.")
    parser.add_argument("files", nargs="*", type=Path, help="default: all pages for users")
    parser.add_argument("--sentences", type=int, metavar="N", help="print N sentences instead")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--key", type=Path, help="write where they are from to this file instead")
    options = parser.parse_args()
    if options.sentences:
        drawn = [*enumerate(draw(options.sentences, options.seed), 1)]
        for number, (source, text) in drawn:
            print(f"{number}. {text}" if options.key else f"{number}. {text} [{source}]")
        if options.key:
            key = "".join(f"{number}. {source}\n" for number, (source, _) in drawn)
            options.key.write_text(key, encoding="utf-8")
        return 0
    found = [
        f"{page.relative_to(ROOT) if page.is_relative_to(ROOT) else page}:{line}: {problem}"
        for page in options.files or documents()
        for line, problem in check(page.read_text("utf-8"))
    ]
    if not options.files:
        found += check_strings()
    print("".join(f"{each}\n" for each in found), end="")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
