"""How long the explorer takes for each interaction: run with the folders that `torchcaps app` would get."""

import http.client
import json
import statistics
import sys
from threading import Thread
from time import perf_counter

from torchcaps.explorer import Explorer, Shelf, read_given

REPEATS = 15


def ask(port: int, verb: str, question: dict[str, object]) -> dict[str, object]:
    """One question over HTTP, as the page asks it."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", f"/api/{verb}", json.dumps(question), {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def measure(port: int, key: str) -> dict[str, list[float]]:
    """Seconds of each kind of question about different images."""
    found: dict[str, list[float]] = {}

    def timed(verb: str, question: dict[str, object]) -> dict[str, object]:
        started = perf_counter()
        answer = ask(port, verb, question)
        found.setdefault(verb, []).append(perf_counter() - started)
        return answer

    for number in range(REPEATS):
        image = {"model": key, "image": {"example": number, "of": key}}
        look = timed("look", image)
        timed("cover", {**image, "winner": look["winner"]})
        timed("typical", image)
        timed("examples", {"model": key, "start": 0})
        capsule = look["capsule"]
        if capsule is not None:
            timed("reconstruct", {"model": key, "winner": look["winner"], "poses": capsule["poses"]})
    return found


def main() -> None:
    """Print the median and the slowest of each interaction, in milliseconds."""
    shelf = Shelf(read_given(sys.argv[1:]))
    with Explorer(shelf) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        for choice in shelf.given.choices:
            started = perf_counter()
            ask(server.server_port, "look", {"model": choice.key, "image": {"example": 0, "of": choice.key}})
            first = perf_counter() - started
            shelf.reference(choice.key).wait()
            ready = perf_counter() - started
            print(f"{choice.title}: first look {first:.2f} s, trees compared after {ready:.1f} s")
            for verb, seconds in measure(server.server_port, choice.key).items():
                middle, most = statistics.median(seconds), max(seconds)
                print(f"  {verb:12} median {1000 * middle:5.0f} ms, slowest {1000 * most:5.0f} ms")
        for verb in ("pose", "parts"):
            for item in range(len(shelf.given.tabs.get(verb, []))):
                times = []
                for number in range(REPEATS):
                    started = perf_counter()
                    ask(server.server_port, verb, {"item": item, "number": number})
                    times.append(perf_counter() - started)
                middle, most = statistics.median(times[1:]), max(times[1:])
                print(
                    f"{verb} tab: first {1000 * times[0]:.0f} ms, then median {1000 * middle:.0f} ms, "
                    f"slowest {1000 * most:.0f} ms"
                )
        server.shutdown()


if __name__ == "__main__":
    main()
