"""What a run prints: steps with their seconds, and lines since the notice."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from local.recording import Step

# A step that says nothing for so long is said to be alive.
_SILENCE_SECONDS = 5
_STYLES = {"bold": "1", "dim": "2", "green": "32", "red": "31"}


class Console:
    """Writes whole lines, from any thread, to a terminal or a file."""

    def __init__(
        self, stream: TextIO = sys.stdout, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._began = clock()
        self._colours = stream.isatty() and "NO_COLOR" not in os.environ
        self._lock = threading.Lock()
        self._steps: list[Step] = []

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that are finished."""
        return tuple(self._steps)

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self._clock() - self._began

    def paint(self, text: str, style: str) -> str:
        """The text in a style, where colours are shown."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self._colours else text

    def line(self, text: str = "") -> None:
        """One line; what is not printable is shown as its escape."""
        with self._lock:
            shown = text.encode(self._stream.encoding or "utf-8", "backslashreplace")
            self._stream.write(shown.decode(self._stream.encoding or "utf-8") + "\n")
            self._stream.flush()

    def heading(self, text: str) -> None:
        """The title of what follows."""
        self.line()
        self.line(self.paint(text, "bold"))

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[Callable[[str], None]]:
        """A step of the run; what it is given is called with each piece of progress."""
        self._at(name)
        began = self._clock()
        done, spoken = threading.Event(), threading.Event()

        def progress(text: str) -> None:
            spoken.set()
            self._at(self.paint(f"  {text}", "dim"))

        def reassure() -> None:
            while not done.wait(_SILENCE_SECONDS):
                if not spoken.is_set():
                    self._at(self.paint("  still at work", "dim"))
                spoken.clear()

        thread = threading.Thread(target=reassure, daemon=True)
        thread.start()
        try:
            yield progress
        finally:
            done.set()
            thread.join()
        self._steps.append(Step(name, self._clock() - began))

    def table(self, headings: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> None:
        """Columns as wide as what is in them."""
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        for index, cells in enumerate((headings, *rows)):
            text = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
            self.line("  " + (self.paint(text, "dim") if index == 0 else text).rstrip())

    def _at(self, text: str) -> None:
        self.line(f"{self.elapsed:6.1f} s  {text}")
