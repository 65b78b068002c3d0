"""Ray: a cluster, or one on this machine, and jobs done by its actors, their results in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from biograft.compute import Opener
from biograft.errors import MissingExtraError

J = TypeVar("J")
R = TypeVar("R")
_EXTRA_CORES = 2
"""Cores besides one per actor: Ray Data hangs if its reading tasks find none."""
_JOBS_PER_ACTOR = 2
"""Jobs that are read ahead per actor."""
_RETRIES = 3
"""Times that an actor is started again, and its job repeated, when it is killed."""


@contextmanager
def ray_cluster(workers: int, purpose: str) -> Iterator[Any]:
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
        ray.init(num_cpus=workers + _EXTRA_CORES, include_dashboard=False, **quiet)
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
    work: Callable[[Any, J], R], jobs: Iterable[J], opener: Opener, workers: int, purpose: str
) -> Iterator[R]:
    """Do ``work(opened, job)`` for all jobs by actors, and yield the results in their order."""
    with ray_cluster(workers, purpose) as ray:
        from ray.util import ActorPool

        kind = ray.remote(
            num_cpus=1, max_restarts=_RETRIES, max_task_retries=_RETRIES
        )(_JobActor)  # fmt: skip
        pool: Any = ActorPool([kind.remote(work, opener) for _ in range(workers)])
        n_waiting = 0
        for job in jobs:
            if n_waiting == _JOBS_PER_ACTOR * workers:
                yield pool.get_next()
                n_waiting -= 1
            pool.submit(lambda actor, value: actor.do.remote(value), job)
            n_waiting += 1
        while pool.has_next():
            yield pool.get_next()
