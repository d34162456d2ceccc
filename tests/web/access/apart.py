"""Coroutines in a thread of their own: a browser of another test may keep a loop in the first thread of the process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


def run_apart(coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
