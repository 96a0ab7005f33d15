"""Does work that may crash in other processes: returns each item's result, or the signal."""

import collections
import multiprocessing
import signal
from multiprocessing.connection import wait


def serve(work, items, connection, seconds):
    for item in items:
        connection.send((item, None))
        signal.alarm(seconds)  # by default, the signal ends the process
        result = work(item)
        signal.alarm(0)
        connection.send((item, result))


class Worker:
    def __init__(self, context, work, items, seconds):
        self.left = collections.deque(items)
        self.begun = None
        self.connection, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=serve, args=(work, list(items), theirs, seconds))
        self.process.start()
        theirs.close()

    def ended_by(self):
        self.process.join()
        code = self.process.exitcode
        if code >= 0:
            return f"the process ended with {code}"
        return f"the process ended by {signal.Signals(-code).name}"


def run_all(work, items, jobs, chunk=40, seconds=300):
    """Yields pairs of an item and the result of `work`, or of an item and a str if the process died, in
    any order. It forks, so modules may be loaded before, unless they start threads."""
    context = multiprocessing.get_context("fork")
    items = list(items)
    chunks = collections.deque(items[i:i + chunk] for i in range(0, len(items), chunk))
    running = []
    while chunks or running:
        while chunks and len(running) < jobs:
            running.append(Worker(context, work, chunks.popleft(), seconds))
        for connection in wait([worker.connection for worker in running]):
            worker = next(w for w in running if w.connection is connection)
            try:
                item, result = connection.recv()
            except EOFError:
                running.remove(worker)
                why = worker.ended_by()
                if worker.begun is not None:
                    yield worker.begun, why
                if worker.left:
                    chunks.appendleft(list(worker.left))
                continue
            if result is None:
                worker.begun = worker.left.popleft()
            else:
                worker.begun = None
                yield item, result
