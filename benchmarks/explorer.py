"""How long the explorer takes for each interaction: run with the folders that `torchcaps app` would get.

Beside the time that a person waits, the processor time: it hardly depends on what else the machine does.
"""

import http.client
import json
import os
import statistics
import sys
from threading import Thread
from time import perf_counter, process_time

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command has it, before torch is imported

from torchcaps.explorer import Explorer, Shelf, read_given

REPEATS = 15


def ask(server: Explorer, verb: str, question: dict[str, object]) -> dict[str, object]:
    """One question over HTTP, as the page asks it."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    headers = {"Content-Type": "application/json", "Cookie": server.entry.cookie}
    connection.request("POST", f"/api/{verb}", json.dumps(question), headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


class Clock:
    """Asks and keeps the times of each kind of question."""

    def __init__(self, server: Explorer) -> None:
        self.server = server
        self.times: dict[str, list[tuple[float, float]]] = {}

    def ask(self, verb: str, question: dict[str, object]) -> dict[str, object]:
        """The answer."""
        started, worked = perf_counter(), process_time()
        answer = ask(self.server, verb, question)
        self.times.setdefault(verb, []).append((perf_counter() - started, process_time() - worked))
        return answer

    def report(self) -> None:
        """Print the medians, and the longest that a person waited, in milliseconds; then begin anew."""
        for verb, times in self.times.items():
            waited, worked = ([1000 * each for each in column] for column in zip(*times, strict=True))
            print(
                f"  {verb:12} waited {statistics.median(waited):5.0f} ms, at most {max(waited):5.0f} ms; "
                f"processor {statistics.median(worked):5.0f} ms"
            )
        self.times = {}


def measure(clock: Clock, key: str) -> None:
    """Ask about different images, as the page does."""
    for number in range(REPEATS):
        image = {"model": key, "image": {"example": number, "of": key}}
        look = clock.ask("look", image)
        clock.ask("cover", {**image, "winner": look["winner"]})
        clock.ask("typical", image)
        clock.ask("examples", {"model": key, "start": 0})
        capsule = look["capsule"]
        if capsule is not None:
            clock.ask("reconstruct", {"model": key, "winner": look["winner"], "poses": capsule["poses"]})


def main() -> None:
    """Time all networks and tabs."""
    shelf = Shelf(read_given(sys.argv[1:]))
    with Explorer(shelf) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        clock = Clock(server)
        for choice in shelf.given.choices:
            started = perf_counter()
            shelf.reference(choice.key).wait()
            print(f"{choice.title}: loaded, with its trees, in {perf_counter() - started:.1f} s")
            measure(clock, choice.key)
            clock.report()
        for verb in ("pose", "parts"):
            for item in range(len(shelf.given.tabs.get(verb, []))):
                ask(server, verb, {"item": item, "number": 0})  # opens the folder
                for number in range(1, REPEATS):
                    clock.ask(verb, {"item": item, "number": number})
        clock.report()
        server.shutdown()
    shelf.close()


if __name__ == "__main__":
    main()
