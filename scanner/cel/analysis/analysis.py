"""The results of checking an expression, before it is evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from scanner.cel.analysis.constants import FoldedTree
    from scanner.cel.checking.checker import CheckedTree
    from scanner.cel.checking.env import Environment
    from scanner.cel.syntax.tree import Node


class Analysis(Struct, frozen=True, eq=False):
    """A well-typed tree, its types, its constants and the environment that it was checked in. Compared by identity."""

    root: Node
    checked: CheckedTree
    folded: FoldedTree
    environment: Environment
