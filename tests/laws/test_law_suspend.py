"""A crawl that is put to sleep and woken again: everything it does about time must survive not having been there."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

from corpus.testing.web_process import ServerProcess
from tests.laws.crawl_folder import Folder
from tests.laws.law_web import LawWeb


def test_a_suspended_crawl_goes_on_where_it_was(web: LawWeb, server: ServerProcess, whole: Folder, tmp_path: Path) -> None:
    """SIGSTOP and SIGCONT for supervisor and fetch process together, five times in the middle of the crawl: 0 lost, 0 double,
    no gap short, the same rows as an undisturbed run."""
    folder = Folder.make(tmp_path / "corpus", server, web.seeds())
    rng, began = random.Random(5), time.time()
    with subprocess.Popen(folder.argv(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True) as child:
        while not folder.logs() and child.poll() is None:
            time.sleep(0.02)
        stopped = 0
        for _ in range(5):
            time.sleep(rng.uniform(0.1, 0.5))
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGSTOP)
                time.sleep(rng.uniform(0.2, 0.9))
                os.killpg(child.pid, signal.SIGCONT)
                stopped += 1
        _, told = child.communicate(timeout=180)
    folder.windows.append((began, time.time()))
    assert child.returncode == 0, told[-2000:]
    assert stopped == 5
    assert folder.urls() == whole.urls()
    assert folder.rows() == whole.rows()
    folder.check_manners(web.refusals())
