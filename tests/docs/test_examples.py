"""Every runnable example of the documents, run in the order of its page on a real database."""

from __future__ import annotations

import ast
import re
import sys
from types import ModuleType

import pytest

from tests.docs.pages import PAGES, Block, blocks, name_of


def runnable(page) -> list[Block]:
    return [block for block in blocks(page) if "runnable" in block.words]


def module_for(page) -> ModuleType:
    # Tasks must be found by their path, hence in a module.
    module = ModuleType("example_" + re.sub(r"\W", "_", name_of(page).removesuffix(".md")))
    sys.modules[module.__name__] = module
    return module


def run(block: Block, module: ModuleType) -> None:
    # The lines of the page, so that a traceback leads there.
    code = compile("\n" * block.line + block.text, str(block.page), "exec")
    exec(code, vars(module))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=name_of)
def test_the_examples_of_a_page_run_as_printed(page):
    module = module_for(page)

    try:
        for block in runnable(page):
            run(block, module)
    finally:
        del sys.modules[module.__name__]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_that_is_not_run_is_at_least_python(page):
    for block in blocks(page):
        if block.language == "python":
            # As in a shell of asyncio: what is shown of async code needs no function around it.
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            compile("\n" * block.line + block.text, str(page), "exec", flags=flags)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_to_a_file_of_the_checkout_leads_there(page):
    prose = re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))

    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", prose):
        assert (page.parent / target).exists(), target


def test_there_are_examples_at_all():
    assert sum(len(runnable(page)) for page in PAGES) >= 10
