"""What is left of a localized flight: tables, files for maps and globes, pictures and a page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from torchcaps.core import Plain
from torchcaps.storage import write_bytes, write_json, write_text

from .filter import Grid
from .flight import degrees_of, time_text, truth_cells
from .maps import CompiledMap, write_geotiff
from .record import Recorder

_HEADER = "time,x,y,heading,sigma,converged,restarted,discarded,true_x,true_y,error,problems"


def write_results(recorder: Recorder, compiled: CompiledMap, out: Path, summary: Plain) -> list[Path]:
    """Write all files of a flight to a folder and return their paths; first what needs no other library."""
    grid, crs = compiled.info.grid, compiled.info.crs
    write_text(out / "trajectory.csv", _as_csv(recorder))
    write_json(out / "summary.json", summary)
    drawn = _draw(recorder, compiled, out, summary)
    to_degrees = degrees_of(crs)
    places = [to_degrees(update.estimate.x, update.estimate.y) for update in recorder.updates]
    write_text(out / "trajectory.geojson", json.dumps(_as_geojson(recorder, places)))
    write_text(out / "trajectory.kml", _as_kml(recorder, places, compiled.path.stem))
    names = ["trajectory.csv", "trajectory.geojson", "trajectory.kml", "summary.json"]
    if recorder.beliefs:
        belief = recorder.beliefs[max(recorder.beliefs)]
        north = grid.south + grid.rows * grid.cell
        corner = (grid.west, north, grid.cell)
        write_geotiff(out / "belief.tif", belief[::-1][None].astype(np.float32), corner, crs)
        names.append("belief.tif")
    return [out / name for name in names] + drawn


def _draw(recorder: Recorder, compiled: CompiledMap, out: Path, summary: Plain) -> list[Path]:
    from torchcaps.viz import FlightDrawing, draw_belief, draw_errors, flight_page, to_png

    grid, known = compiled.info.grid, compiled.descriptors.known
    drawing = FlightDrawing(
        title=f"Flight over {compiled.path.stem}",
        picture=_picture(compiled),
        estimates=np.array([_fraction(each.estimate.x, each.estimate.y, grid) for each in recorder.updates]),
        truth=[None if step.truth is None else _fraction(*step.truth, grid) for step in recorder.steps],
        sigmas=[update.estimate.sigma for update in recorder.updates],
        errors=recorder.errors,
        words=["; ".join(update.problems) for update in recorder.updates],
        beliefs={number: belief[::-1] for number, belief in recorder.beliefs.items()},
        metres=(grid.columns * grid.cell, grid.rows * grid.cell),
        converged=[update.estimate.converged for update in recorder.updates],
        unknown=None if known is None else ~known[::-1],
    )
    files = {"belief.png": to_png(draw_belief(drawing)), "errors.png": to_png(draw_errors(drawing))}
    for name, data in files.items():
        write_bytes(out / name, data)
    write_text(out / "flight.html", flight_page(drawing, _in_words(summary)))
    return [*(out / name for name in files), out / "flight.html"]


def _in_words(summary: Plain) -> Plain:
    """The numbers of a flight as its page shows them: titles instead of keys, with units."""

    def show(key: str, form: str) -> str | None:
        return None if summary[key] is None else form.format(summary[key])

    return {
        "updates": summary["updates"],
        "converged": summary["converged"],
        "updates to convergence": summary["updates_to_convergence"],
        "mean error after convergence": show("mean_error_after_convergence_m", "{:.1f} m"),
        "truth inside the 95 % region": show("share_of_truth_in_95_percent_region", "{:.0%}"),
        "error at the end": show("final_error_m", "{:.1f} m"),
        "spread at the end": show("final_sigma_m", "{:.1f} m"),
        "restarts": summary["restarts"],
        "updates with problems": summary["updates_with_problems"],
        "time of an update": show("seconds_per_update", "{:.2g} s"),
    }


def _picture(compiled: CompiledMap) -> NDArray[np.float64] | None:
    """The picture that the compiler put beside the map."""
    path = compiled.path.with_suffix(".png")
    if not path.is_file():
        return None
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB")) / 255


def _fraction(x: float, y: float, grid: Grid) -> tuple[float, float]:
    """A place as shares of the width from the west and of the height from the north."""
    across, up = (x - grid.west) / (grid.columns * grid.cell), (y - grid.south) / (grid.rows * grid.cell)
    return across, 1 - up


def _as_csv(recorder: Recorder) -> str:
    lines = [_HEADER]
    for step, update, error in zip(recorder.steps, recorder.updates, recorder.errors, strict=True):
        found = update.estimate
        cells = [
            time_text(step.time),
            f"{found.x:.3f}",
            f"{found.y:.3f}",
            f"{math.degrees(found.heading):.3f}",
            f"{found.sigma:.3f}",
            str(int(found.converged)),
            str(int(found.restarted)),
            f"{found.discarded:.3g}",
            *truth_cells(step),
            "" if error is None else f"{error:.3f}",
            '"' + "; ".join(update.problems).replace('"', "'") + '"',
        ]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


class _Stretch(NamedTuple):
    """Places of updates in a row whose beliefs had all converged, or all not, from the place before them."""

    converged: bool
    places: list[tuple[float, float]]

    @property
    def name(self) -> str:
        return "estimated trajectory" if self.converged else "means of beliefs that had not converged"


def _stretches(recorder: Recorder, places: Sequence[tuple[float, float]]) -> list[_Stretch]:
    """The trajectory in parts: a mean of many places must not look like the way of the vehicle."""
    found: list[_Stretch] = []
    for before, place, update in zip(places, places[1:], recorder.updates[1:], strict=False):
        converged = update.estimate.converged
        if not found or found[-1].converged != converged:
            found.append(_Stretch(converged, [before]))
        found[-1].places.append(place)
    return found


def _as_geojson(recorder: Recorder, places: Sequence[tuple[float, float]]) -> Plain:
    lines = [
        {
            "type": "Feature",
            "geometry": {"type": "LineString", "coordinates": [list(place) for place in part.places]},
            "properties": {"name": part.name, "converged": part.converged},
        }
        for part in _stretches(recorder, places)
    ]
    points = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": list(place)},
            "properties": {
                "time": step.time,
                "sigma_m": round(update.estimate.sigma, 2),
                "converged": update.estimate.converged,
            },
        }
        for place, step, update in zip(places, recorder.steps, recorder.updates, strict=True)
    ]
    return {"type": "FeatureCollection", "features": [*lines, *points]}


def _as_kml(recorder: Recorder, places: Sequence[tuple[float, float]], name: str) -> str:
    marks = "".join(_as_placemark(part) for part in _stretches(recorder, places))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<kml xmlns="http://www.opengis.net/kml/2.2"><Document>'
        f"<name>{escape(name)}</name>{marks}</Document></kml>\n"
    )


def _as_placemark(part: _Stretch) -> str:
    colour, width = ("ff2b74f0", 3) if part.converged else ("802b74f0", 1)
    coordinates = " ".join(f"{longitude:.7f},{latitude:.7f},0" for longitude, latitude in part.places)
    return (
        f"<Placemark><name>{part.name}</name>"
        f"<Style><LineStyle><color>{colour}</color><width>{width}</width></LineStyle></Style>"
        f"<LineString><tessellate>1</tessellate><coordinates>{coordinates}</coordinates></LineString>"
        "</Placemark>"
    )
