"""Pictures of the page of the service, for the documentation: light, dark, on a phone, in Chinese.

    python docs/figures/screenshots.py

It builds the starter store, serves it, and drives the Chromium of the system by playwright.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from biograft.kb import build_starter
from biograft.serve import create_app

MAX_BYTES = 150_000


class Picture(NamedTuple):
    """What is photographed, and how."""

    name: str
    width: int
    height: int
    scheme: str = "light"
    language: str = "en-US"
    opens: str = "type 2 diabetes"


PICTURES = (
    Picture("page-light", 1280, 900),
    Picture("page-dark", 1280, 900, scheme="dark"),
    Picture("page-phone", 390, 844),
    Picture("page-chinese", 1280, 900, language="zh-CN", opens="2型糖尿病"),
)


def serve(kb: Path) -> tuple[uvicorn.Server, str]:
    """Serve a store in a thread; return the server and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(create_app(kb), port=port, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return server, f"http://127.0.0.1:{port}"


def photograph(page: Page, address: str, picture: Picture, folder: Path) -> Path:
    """Link the example, open one of its findings, and take the picture."""
    page.goto(address)
    page.click("#example")
    page.wait_for_selector("#marked .finding")
    page.locator("#marked .finding", has_text=picture.opens).first.click()
    page.wait_for_selector("#tree strong")
    page.evaluate("window.scrollTo(0, 0)")
    path = folder / f"{picture.name}.png"
    page.screenshot(path=path)
    with Image.open(path) as taken:
        small = taken.convert("RGB").quantize(128)
    small.save(path, optimize=True)
    return path


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--kb", type=Path, help="another store; default: the starter store")
    options = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if chromium is None:
        raise SystemExit("error: Chromium is not installed")
    with tempfile.TemporaryDirectory() as work, sync_playwright() as engine:
        kb = options.kb or Path(work) / "KB"
        if options.kb is None:
            build_starter(kb)
        server, address = serve(kb)
        browser: Any = engine.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for each in PICTURES:
            context = browser.new_context(
                viewport={"width": each.width, "height": each.height},
                color_scheme=each.scheme,
                locale=each.language,
                reduced_motion="reduce",
            )
            path = photograph(context.new_page(), address, each, options.out)
            context.close()
            size = path.stat().st_size
            print(f"{path}  {size:,} bytes")  # noqa: T201
            if size > MAX_BYTES:
                raise SystemExit(f"error: {path} has more than {MAX_BYTES:,} bytes")
        browser.close()
        server.should_exit = True


if __name__ == "__main__":
    main()
