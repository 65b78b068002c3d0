"""Ray: a cluster, or one on this machine, and jobs done by its actors, their results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from biograft.compute import Finished, Opener
from biograft.errors import MissingExtraError

J = TypeVar("J")
R = TypeVar("R")
_JOBS_PER_ACTOR = 2
"""Jobs that are read ahead per actor."""
_RETRIES = 3
"""Times that an actor is started again, and its job repeated, when it is killed."""


@contextmanager
def _ray_cluster(workers: int, purpose: str) -> Iterator[Any]:
    """Give Ray, joined to the cluster of ``RAY_ADDRESS``, or to one started on this machine.

    A cluster that was there before is left as it is.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise MissingExtraError("ray", purpose) from error
    if ray.is_initialized():
        yield ray
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if os.environ.get("RAY_ADDRESS"):
        ray.init(**quiet)
    else:
        ray.init(num_cpus=workers, include_dashboard=False, **quiet)
    try:
        yield ray
    finally:
        ray.shutdown()


class _JobActor:
    """Does jobs with what it has opened itself."""

    def __init__(self, work: Callable[[Any, Any], Any], opener: Opener) -> None:
        self._work, self._opened = work, opener.open()

    def do(self, job: Any) -> Any:
        """Do one job."""
        return self._work(self._opened, job)


def run_on_ray(
    work: Callable[[Any, J], R],
    jobs: Iterable[J | Finished[R]],
    opener: Opener,
    workers: int,
    purpose: str,
) -> Iterator[R]:
    """Do ``work(opened, job)`` for all jobs by actors.

    Args:
        work: called with what an actor has opened, and a job.
        jobs: the jobs; of those that are finished the result is yielded.
        opener: opens what an actor needs.
        workers: number of actors.
        purpose: what Ray is needed for, in the message if it is missing.

    Yields:
        the results in the order of the jobs.
    """
    with _ray_cluster(workers, purpose) as ray:
        from ray.util import ActorPool

        kind = ray.remote(num_cpus=1, max_restarts=_RETRIES, max_task_retries=_RETRIES)(_JobActor)
        pool: Any = ActorPool([kind.remote(work, opener) for _ in range(workers)])
        pending: deque[Finished[R] | None] = deque()
        for job in jobs:
            if len(pending) == _JOBS_PER_ACTOR * workers:
                yield _next_result(pool, pending)
            if isinstance(job, Finished):
                pending.append(job)
            else:
                pool.submit(lambda actor, value: actor.do.remote(value), job)
                pending.append(None)
        while pending:
            yield _next_result(pool, pending)


def _next_result(pool: Any, pending: deque[Finished[R] | None]) -> R:
    finished = pending.popleft()
    result: R = pool.get_next() if finished is None else finished.result
    return result
