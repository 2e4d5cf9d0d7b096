"""The house rules of hookviz, read from the syntax trees: who may import whom, and who may touch what."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "hookviz"

FOUNDATION = {"types", "errors"}
MIDDLE = {"hooks", "models", "images", "statistics", "layout", "sanity", "views"}
TOP = {"ui", "cli", "__main__", "__init__"}

REGISTERS = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
    "register_module_",
)


def room(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> set[str]:
    """Dotted names of everything imported anywhere in the file, functions included, except under TYPE_CHECKING."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import; the rules read absolute ones"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def attributes(tree: ast.AST) -> set[str]:
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def breaches(path: Path, source: str) -> list[str]:
    """Every rule that a file at ``path`` with this source would break."""
    tree = ast.parse(source)
    names, here = imported(tree), room(path)
    found: list[str] = []

    def forbid(package: str, why: str) -> None:
        found.extend(f"{path.name} imports {name}: {why}" for name in names if (name + ".").startswith(package + "."))

    forbid("matplotlib.pyplot", "its state is shared by all sessions of a server")
    forbid("pylab", "its state is shared by all sessions of a server")
    if here != "ui":
        forbid("streamlit", "only ui may")
    if here == "views":
        forbid("torch", "views work on plain arrays")
    if here in (MIDDLE - {"views"}) | FOUNDATION:
        forbid("matplotlib", "pictures live in views")
    if here in FOUNDATION:
        for other in MIDDLE | TOP:
            forbid(f"hookviz.{other}", "imports point one way")
        forbid("torch", "types and errors are standard library and numpy")
    if here in MIDDLE:
        for other in TOP - {"__init__"}:
            forbid(f"hookviz.{other}", "imports point one way")
    if here == "views":
        for other in MIDDLE - {"views"}:
            forbid(f"hookviz.{other}", "views stand on types alone")
    elif here in MIDDLE:
        forbid("hookviz.views", "computing does not draw")
    if path != PACKAGE / "hooks" / "attach.py":
        found.extend(
            f"{path.name} calls {name}: only hooks/attach.py registers hooks"
            for name in attributes(tree)
            if name.startswith(REGISTERS)
        )
    if path.parent != PACKAGE / "ui" / "state" and "session_state" in attributes(tree):
        found.append(f"{path.name} touches session_state: only ui/state does")
    return found


SOURCES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_keeps_the_house_rules(path: Path) -> None:
    assert breaches(path, path.read_text()) == []


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("views/mosaic.py", "import torch"),
        ("views/mosaic.py", "def f():\n    from torch import nn"),
        ("views/mosaic.py", "from hookviz.hooks import record"),
        ("hooks/record.py", "import streamlit as st"),
        ("hooks/record.py", "import matplotlib"),
        ("hooks/record.py", "handle = module.register_forward_hook(hook)"),
        ("hooks/record.py", "handle = module.register_full_backward_hook(hook)"),
        ("models.py", "from hookviz.ui import main"),
        ("types.py", "import torch"),
        ("errors.py", "from hookviz.models import load_model"),
        ("sanity/report.py", "from hookviz.views import ridge_figure"),
        ("sanity/report.py", "import matplotlib"),
        ("ui/main.py", "from matplotlib import pyplot"),
        ("ui/main.py", "import matplotlib.pyplot as plt"),
        ("ui/main.py", "st.session_state['model'] = 1"),
        ("ui/stateless.py", "st.session_state['model'] = 1"),
    ],
)
def test_a_planted_breach_is_seen(place: str, source: str) -> None:
    assert breaches(PACKAGE / place, source)


def test_app_is_short() -> None:
    app = ROOT / "app.py"
    assert len(app.read_text().splitlines()) <= 20


def test_public_names_are_sorted_and_exist() -> None:
    import hookviz

    assert list(hookviz.__all__) == sorted(hookviz.__all__)
    assert all(hasattr(hookviz, name) for name in hookviz.__all__)


def test_public_init_holds_no_code() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    allowed = (ast.ImportFrom, ast.Import, ast.Expr, ast.Assign)
    assert all(isinstance(node, allowed) for node in tree.body)
