"""The page while runs train: the same report, updated as runs are evaluated. For this machine only."""

import asyncio
import json
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grokscope.errors import InputError
from grokscope.files import named
from grokscope.runs.following import FollowedRun
from grokscope.runs.index import Stamp, stamp_files
from grokscope.runs.pace import Pace
from grokscope.runs.store import Store
from grokscope.view.page.embedded import COLUMNS, embedded_data
from grokscope.view.page.fans import fanned_names, fans_of
from grokscope.view.page.html import page_with
from grokscope.view.page.rows import row_of
from grokscope.view.page.sources import ShownRun, read_runs, source_of, wanted_names

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["Watch", "live_app", "serve_live"]

PAUSE = 0.4  # seconds between two readings of the folder: well under the two in which a point must appear
SILENCE = 10.0  # seconds after which a sign of life is sent
SHARE = 0.5  # of the time, at most, is spent on sending everything again
RHYTHM = 1.0  # seconds between two messages of progress
FILES = ("log.jsonl", "outcome.json", "spec.json")


class Watch:
    """What one reader has been sent of a folder, and what is new since.

    Of a log that only grew, the new evaluations are sent; of one that was rewound, because its run was continued from
    an earlier state, the number that stays and those that follow. New and finished runs change tables and fits, so
    everything is sent again.
    """

    def __init__(self, path: Path, title: str = "") -> None:
        self.path, self.title = path, title
        self.seen: dict[str, Stamp] = {}
        self.sent: dict[str, ShownRun] = {}
        self.forecast: frozenset[str] = frozenset()
        self.problems: set[str] = set()
        self.pace = Pace()
        self.progress = ""
        self.wait_until = self.progress_at = 0.0
        self.is_stale = True

    def news(self) -> list[tuple[str, str]]:
        """Events to send now, each a name and its data; empty where nothing is new."""
        more, changed = [], self._changed()
        # At first everything is sent, and read once.
        runs, problems = read_runs(self.path, changed) if self.sent else ([], [])
        self.is_stale |= not {*problems} <= self.problems
        for name in {*changed} - {run.name for run in runs} if self.sent else ():
            del self.seen[name]  # being written, or damaged: it is read again
        for run in runs:
            before = self.sent.get(run.name)
            self.is_stale |= before is None or run.is_finished or before.is_finished
            if before is not None:  # the others are in what is sent again
                more.append(_news(before, run, run.name in self.forecast))
                self.sent[run.name] = run
        if self.is_stale and time.monotonic() >= self.wait_until:
            return self._everything() + self._progress(time.time())
        return ([("more", json.dumps(more))] if more else []) + self._progress(time.time())

    def _progress(self, now: float) -> list[tuple[str, str]]:
        """How far all runs are and how fast, where that has changed since it was last sent."""
        if not self.sent or now < self.progress_at:
            return []
        runs = [self._followed(run) for run in self.sent.values()]
        for run in runs:
            if not run.is_finished:
                self.pace.note(run)
        known = asdict(self.pace.progress(runs, now)) | {
            "runs": len(runs),
            "ended": sum(run.is_finished for run in runs),
        }
        before, self.progress, self.progress_at = self.progress, json.dumps(known), now + RHYTHM
        return [] if self.progress == before else [("progress", self.progress)]

    def _followed(self, run: ShownRun) -> FollowedRun:
        """A run with the times at which its folder was made and its log was written."""
        log, _, spec = (stamp[2] / 1e9 if stamp else None for stamp in self.seen.get(run.name, (None,) * len(FILES)))
        return FollowedRun(run.name, run.record, spec or 0.0, log if run.record.evaluations else None)

    def _changed(self) -> list[str]:
        now = {name: stamp_files(f"{self.path}/{name}", FILES) for name in Store(self.path).names()}
        changed = [name for name, stamp in now.items() if self.seen.get(name) != stamp]
        self.seen = now
        return changed

    def _everything(self) -> list[tuple[str, str]]:
        start = time.monotonic()
        try:
            source = source_of(self.path, self.title)
        except InputError:  # nothing yet
            return []
        self.sent, self.problems = {run.name: run for run in source.runs}, {*source.problems}
        self.forecast = fanned_names(source.runs)
        embedded = embedded_data(source)
        now = time.monotonic()
        self.wait_until, self.is_stale = now + (now - start) / SHARE, False
        return [("all", json.dumps(embedded))]


def _news(before: ShownRun, now: ShownRun, is_forecast: bool) -> dict[str, Any]:
    """The run's row with its forecasts, how many evaluations stay, and those that follow."""
    old, new = before.record.evaluations, now.record.evaluations
    shared = min(len(old.get("step", ())), len(new.get("step", ())))
    names = [name for name in ("step", *COLUMNS) if name in new]
    keep = next(
        (i for i in range(shared) if any(not _same(old.get(n, [])[i : i + 1], new[n][i]) for n in names)), shared
    )
    evaluations = {name: [None if x != x else x for x in new[name][keep:]] for name in names} or {"step": []}
    row = {key: None if isinstance(value, float) and value != value else value for key, value in row_of(now).items()}
    ahead = {"forecast": fans_of([now]).get(now.name)} if is_forecast else {}
    return {"row": row | ahead, "keep": keep, "evaluations": evaluations}


def _same(old: list[Any], new: float | int) -> bool:
    return len(old) == 1 and (old[0] == new or (old[0] != old[0] and new != new))


def live_app(path: Path, token: str, hosts: frozenset[str], title: str = "") -> "Starlette":
    """The two addresses of the live view, `/` and `/events`; others than their token's holder get 403."""
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse, PlainTextResponse, StreamingResponse
    from starlette.routing import Route

    def rejection(request: "Request") -> "Response | None":
        is_ours = request.headers.get("host", "") in hosts
        origin = request.headers.get("origin")
        is_same = origin is None or origin in {f"http://{host}" for host in hosts}
        given = request.query_params.get("token", "").encode()
        if is_ours and is_same and secrets.compare_digest(given, token.encode()):
            return None
        return PlainTextResponse("Open the address that grokscope serve has printed.", 403, HEADERS)

    async def page(request: "Request") -> "Response":
        shown = title or path.resolve().name
        return rejection(request) or HTMLResponse(page_with(shown, {}, f"events?token={token}"), headers=HEADERS)

    async def events(request: "Request") -> "Response":
        return rejection(request) or StreamingResponse(
            _stream(Watch(path, title)), media_type="text/event-stream", headers=HEADERS
        )

    return Starlette(routes=[Route("/", page), Route("/events", events)])


HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


async def _stream(watch: Watch) -> AsyncIterator[str]:
    """Events as a browser reads them; a comment where nothing happens, so that a closed window is noticed."""
    yield "retry: 1000\n\n"
    quiet = time.monotonic()
    while True:
        for name, content in await asyncio.to_thread(watch.news):
            quiet = time.monotonic()
            yield f"event: {name}\ndata: {content}\n\n"
        if time.monotonic() - quiet > SILENCE:
            quiet = time.monotonic()
            yield ": alive\n\n"
        await asyncio.sleep(PAUSE)


def serve_live(path: Path, port: int, title: str, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `announce` receives the address with its token."""
    import uvicorn

    if not path.is_dir():
        raise InputError(f"there is no folder {named(path)}")
    wanted_names(path)  # rejects what is too much for a page
    if not 0 <= port < 2**16:
        raise InputError(f"a port lies between 0 and 65535, got {port}")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()  # a browser that opens the address at once waits until the server answers
    except OSError as error:
        raise InputError(f"port {port} cannot be used: {os.strerror(error.errno or 0)}; try --port 0") from None
    taken = listener.getsockname()[1]
    token = secrets.token_urlsafe(24)
    app = live_app(path, token, frozenset({f"127.0.0.1:{taken}", f"localhost:{taken}"}), title)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, server_header=False)
    announce(f"http://127.0.0.1:{taken}/?token={token}")
    uvicorn.Server(config).run([listener])
