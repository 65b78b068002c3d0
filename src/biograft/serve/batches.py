"""Batches of requests: those that arrive while others are worked on are worked on together."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Job = TypeVar("Job")
Answer = TypeVar("Answer")
_WEIGHT = 0.2
"""Weight of the last batch in the average time of a job."""


class QueueFullError(Exception):
    """The queue is full; the sender should try again later."""

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__("too many requests wait")
        self.retry_after = max(1, math.ceil(seconds))
        """Seconds after which it may be worth trying again."""


class MicroBatcher(Generic[Job, Answer]):
    """Runs a function over batches of jobs in a thread of its own, in the order of arrival.

    Nothing waits for a batch to fill: a batch is what has arrived while the last one ran. Where a
    batch fails, its jobs are run one by one, so that only those that are to blame get the error.

    Args:
        run: Function that answers a batch of jobs, in their order.
        max_batch: Maximum size of a batch.
        max_waiting: Maximum number of jobs that wait; further ones are refused.
        max_seconds: Expected seconds of waiting above which jobs are refused.
        size: Size of a job, such as its number of texts; default: 1.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Job]], Sequence[Answer]],
        *,
        max_batch: int,
        max_waiting: int,
        max_seconds: float = math.inf,
        size: Callable[[Job], int] = lambda job: 1,
    ) -> None:
        self._run, self._size = run, size
        self._max_batch, self._max_waiting = max_batch, max_waiting
        self._max_seconds, self._seconds_each, self._size_waiting = max_seconds, 0.0, 0
        self._waiting: asyncio.Queue[tuple[Job, asyncio.Future[Answer]]] = asyncio.Queue()
        self._thread: ThreadPoolExecutor | None = None
        self._worker: asyncio.Task[None] | None = None

    async def submit(self, job: Job) -> Answer:
        """Return the answer to a job, or raise ``QueueFullError`` at once.

        It is raised when as many jobs wait as may, or when those before it will take too long.

        Args:
            job: The job.
        """
        expected = self._size_waiting * self._seconds_each
        if self._waiting.qsize() >= self._max_waiting or expected > self._max_seconds:
            raise QueueFullError(expected)
        worker, loop = self._worker, asyncio.get_running_loop()
        if worker is None or worker.done() or worker.get_loop() is not loop:
            self._start()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.put_nowait((job, answer))
        self._size_waiting += self._size(job)
        return await answer

    def _start(self) -> None:
        """Begin to work, in the loop that runs now."""
        self._waiting, self._size_waiting = asyncio.Queue(), 0
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="link")
        self._worker = asyncio.create_task(self._work())

    async def close(self) -> None:
        """Answer what waits, then stop; the next job starts it anew."""
        while self._worker is not None and not self._worker.done() and self._waiting.qsize():
            await asyncio.sleep(0.01)
        if self._worker is not None:
            self._worker.cancel()
            self._worker = None
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None

    async def _work(self) -> None:
        while True:
            batch = [await self._waiting.get()]
            size = self._size(batch[0][0])
            while self._waiting.qsize() and size < self._max_batch:
                batch.append(self._waiting.get_nowait())
                size += self._size(batch[-1][0])
            self._size_waiting -= size
            # the sender of a cancelled one has gone, or has waited too long
            batch = [(job, answer) for job, answer in batch if not answer.cancelled()]
            started = time.perf_counter()
            await self._answer(batch)
            if batch:
                size = sum(self._size(job) for job, _ in batch)
                each = (time.perf_counter() - started) / max(size, 1)  # of no texts: 0
                before = self._seconds_each or each
                self._seconds_each = (1 - _WEIGHT) * before + _WEIGHT * each

    async def _answer(self, batch: list[tuple[Job, asyncio.Future[Answer]]]) -> None:
        if not batch:
            return
        loop = asyncio.get_running_loop()
        try:
            answers = await loop.run_in_executor(self._thread, self._run, [job for job, _ in batch])
        except Exception as error:
            if len(batch) > 1:
                for each in batch:
                    await self._answer([each])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)
