import io
import time

import pytest

from biograft.progress import Progress

CLEAR = "\r\x1b[K"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "enabled"), [(io.StringIO(), True), (Terminal(), False), (io.StringIO(), False)]
)
def test_nothing_is_drawn_away_from_a_terminal_or_when_quiet(stream, enabled):
    progress = Progress(enabled=enabled, stream=stream)
    progress.start("reading")
    progress.advance(5, 0.5)
    progress.finish()
    assert stream.getvalue() == ""
    assert list(progress.seconds) == ["reading"]


def test_a_terminal_shows_stage_fraction_and_rows_over_each_other():
    terminal, now = Terminal(), [100.0]
    progress = Progress(stream=terminal, clock=lambda: now[0])
    progress.start("reading")
    now[0] += 0.21
    progress.advance(1_234_567, 0.42)
    drawn = terminal.getvalue().split(CLEAR)[1:]
    assert drawn[0].startswith("reading  0.0 s")
    assert drawn[1].startswith("reading   42%  1,234,567 rows  0.")
    progress.finish()
    assert terminal.getvalue().endswith(CLEAR)


@pytest.mark.parametrize(
    ("elapsed", "fraction", "before", "left"),
    [
        (3.0, 0.25, 0.0, ", 9 s left"),
        (3.0, 0.75, 0.5, ", 3 s left"),  # a quarter took 3 s
        (60.0, 0.5, 0.0, ", 60 s left"),
        (60.0, 0.25, 0.0, ", 3 min left"),
        (3600.0, 0.1, 0.0, ", 9 h left"),
        (3.0, None, 0.0, ""),
        (3.0, 1.0, 0.0, ""),
        (3.0, 0.5, 0.5, ""),
        (3.0, 0.0, 0.0, ""),
    ],
)
def test_the_remaining_time_assumes_a_constant_rate(elapsed, fraction, before, left):
    terminal, now = Terminal(), [100.0]
    progress = Progress(stream=terminal, clock=lambda: now[0])
    progress.start("reading", before)
    now[0] += elapsed
    progress.advance(1, fraction)
    assert terminal.getvalue().endswith(f"  {elapsed:.1f} s{left}")


def logged(seconds, **options):
    """Advance by ten rows a second, with a loss and from the middle on a dev score."""
    log, now = io.StringIO(), [100.0]
    progress = Progress(stream=log, clock=lambda: now[0], **options)
    progress.start("training")
    for step in range(1, seconds + 1):
        now[0] += 1
        progress.values["loss"] = 1 / step
        if step > 40:
            progress.values["dev acc@1"] = 81.25
        progress.advance(10, step / 200)
    progress.finish()
    return log.getvalue()


def test_a_log_gets_a_line_every_half_minute_with_loss_and_dev_score():
    assert logged(75) == (
        "training   16%  310 rows  31.0 s, 3 min left  loss 0.03226\n"
        "training   31%  620 rows  62.0 s, 2 min left  loss 0.01613  dev acc@1 81.25\n"
    )


def test_short_work_leaves_no_line_in_a_log():
    assert logged(30) == ""


def test_one_switch_turns_all_of_it_off(monkeypatch):
    assert logged(75, enabled=False) == ""
    monkeypatch.setenv("BIOGRAFT_QUIET", "1")
    assert logged(75) == ""


def test_the_numbers_of_a_stage_end_with_it():
    terminal, now = Terminal(), [100.0]
    progress = Progress(stream=terminal, clock=lambda: now[0])
    progress.start("training")
    progress.values["loss"] = 0.5
    now[0] += 1
    progress.advance(1)
    progress.start("test")
    assert terminal.getvalue().count("loss 0.5") == 1


def test_many_small_steps_draw_rarely():
    terminal = Terminal()
    progress = Progress(stream=terminal)
    progress.start("reading")
    start = time.monotonic()
    for _ in range(10_000):
        progress.advance(1)
    assert terminal.getvalue().count(CLEAR) <= 2 + (time.monotonic() - start) / 0.2
