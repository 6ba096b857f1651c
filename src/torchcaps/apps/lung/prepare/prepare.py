"""From patients to a folder that networks learn from: regions, splits by patient, a manifest and a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from torchcaps.core import MissingDataError, Plain, UserError, counted
from torchcaps.storage import (
    DiskError,
    checksum_of,
    one_at_a_time,
    read_mapping,
    write_json,
    write_png,
    write_text,
)

from .regions import Cut
from .sources import Found
from .splits import SHARES, PatientSplit, fold_name, leave_one_out, share_name, split_patients, take_share

MANIFEST, REPORT = "manifest.json", "report.json"
_SPLITS = {"share": "split with a share of, in percent,", "fold": "split that leaves out"}
_FORMAT = 2  # of what is written for a patient; another number makes all patients anew
OnPatient = Callable[[str, int, int], None]  # name, how many are done, how many there are


@dataclass(frozen=True)
class Prepared:
    """What a folder holds: patients with regions, regions, and why other patients have none."""

    patients: tuple[str, ...]
    regions: int
    problems: Mapping[str, str]


def prepare(
    patients: Mapping[str, Callable[[], Found]],
    out: Path,
    *,
    negatives: float = 0.0,
    on_patient: OnPatient = lambda name, done, planned: None,
) -> Prepared:
    """Write the regions of all patients, and lists of who trains, validates and tests.

    A patient that cannot be read is named in `report.json` and does not stop the others. Patients that were
    written before are not read again; those with problems are. Of several processes one writes at a time.

    Args:
        patients: Each is read when it is called.
        out: Folder of what is written.
        negatives: How many regions without a nodule `patients` give for each that shows one; patients that
            were written with another number are read again. Such regions train, and do not test.
        on_patient: Told of each patient that is done.
    """
    with one_at_a_time(out):
        records, problems = _write_patients(patients, out, negatives, on_patient)
        _write_report(out, records, problems)
        useful = {name: record for name, record in records.items() if record["regions"]}
        if len(useful) < 3 and problems:
            first = next(iter(problems.items()))
            raise UserError(
                f"{len(useful)} of {counted(len(patients), 'patient')} can be used, at least 3 are needed; "
                f"{first[0]}: {first[1]} ({out / REPORT} lists all problems)"
            )
        _write_lists(out, useful)
    regions = sum(len(record["regions"]) for record in useful.values())
    return Prepared(tuple(useful), regions, problems)


def _write_patients(
    patients: Mapping[str, Callable[[], Found]], out: Path, negatives: float, on_patient: OnPatient
) -> tuple[dict[str, Plain], dict[str, str]]:
    """What is known of the regions of each patient, and why others have none."""
    records: dict[str, Plain] = {}
    problems: dict[str, str] = {}
    taken: dict[str, str] = {}
    for done, (name, read) in enumerate(patients.items(), start=1):
        try:
            if taken.setdefault(_file_name(name), name) != name:
                raise UserError(
                    f"its files would have the names of those of {taken[_file_name(name)]}; rename it"
                )
            before = _written_before(name, out, negatives)
            records[name] = before or _write_patient(name, read(), out, negatives)
        except DiskError:  # no other patient could be written either
            raise
        except Exception as error:  # whatever it is, the other thousand patients go on
            kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
            problems[name] = kind + " ".join(str(error).split())
        on_patient(name, done, len(patients))
    return records, problems


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "-", text).strip(".-") or "unnamed"


def _record_path(name: str, out: Path) -> Path:
    return out / "patients" / f"{_file_name(name)}.json"


def _written_before(name: str, out: Path, negatives: float) -> Plain | None:
    path = _record_path(name, out)
    if not path.is_file():
        return None
    record = read_mapping(path)
    asked = {"format": _FORMAT, "patient": name, "negatives": negatives}
    is_same = asked == {"negatives": 0.0, **{key: record[key] for key in asked if key in record}}
    files = [
        out / kind / f"{region}.png" for region in record.get("regions", {}) for kind in ("images", "masks")
    ]
    return record if is_same and all(file.is_file() for file in files) else None


def _write_patient(name: str, found: Found, out: Path, negatives: float) -> Plain:
    """Write the regions of a patient, and last what is known of them."""
    regions = {}
    for count, cut in enumerate(found.cuts):
        nodule = "without" if cut.nodule is None else f"{cut.nodule:02d}"
        region = f"{_file_name(name)}_{nodule}_{cut.region.slice:04d}_{count:04d}"
        sums = {
            kind: _write_picture(out / kind / f"{region}.png", pixels)
            for kind, pixels in (("images", cut.region.image), ("masks", cut.region.mask * 255))
        }
        regions[region] = {**_facts(cut), "sha256": sums}
    asked = {"format": _FORMAT, "patient": name, "negatives": negatives}
    record = {**asked, "notes": list(found.notes), "regions": regions}
    write_json(_record_path(name, out), record)
    return record


def _facts(cut: Cut) -> Plain:
    region = cut.region
    return {
        "nodule": cut.nodule,
        "readers": cut.readers,
        "malignancy": cut.malignancy,
        "diameter_mm": None if cut.diameter_mm is None else round(cut.diameter_mm, 3),
        "spacing_mm": None if cut.spacing is None else [round(each, 6) for each in cut.spacing],
        "slice": region.slice,
        "corner": [region.row, region.column],
        "pixels": int(region.mask.sum()),
    }


def _write_picture(path: Path, pixels: NDArray[np.uint8]) -> str:
    write_png(path, Image.fromarray(pixels))
    return checksum_of(path)


def _write_report(out: Path, records: Mapping[str, Plain], problems: Mapping[str, str]) -> None:
    write_json(
        out / REPORT,
        {
            "patients": len(records) + len(problems),
            "problems": dict(problems),
            "without_nodules": [name for name, record in records.items() if not record["regions"]],
            "notes": {name: record["notes"] for name, record in records.items() if record["notes"]},
        },
    )


def _write_lists(out: Path, records: Mapping[str, Plain]) -> None:
    """The manifest, and lists for the whole, for each share, and for each patient left out."""
    split = split_patients(records)
    names = {name: record["regions"] for name, record in records.items()}
    splits = {share_name(share): take_share(split, share) for share in SHARES}
    splits |= {fold_name(_file_name(name)): each for name, each in leave_one_out(records).items()}
    _write_split(out, split, names)
    for title, each in splits.items():
        _write_split(out / "splits" / title, each, names)
    write_text(out / "classes.txt", "nodule\n")
    where = {name: part for part in ("train", "val", "test") for name in getattr(split, part)}
    manifest = {
        region: {"patient": name, "split": where[name], **facts}
        for name, record in records.items()
        for region, facts in record["regions"].items()
    }
    write_json(out / MANIFEST, {"format": _FORMAT, "regions": manifest})


def _write_split(folder: Path, split: PatientSplit, regions: Mapping[str, Mapping[str, Plain]]) -> None:
    """Lists of the parts; regions without a nodule only train: what is measured does not depend on them."""
    for part in ("train", "val", "test"):
        lines = [
            region
            for name in sorted(getattr(split, part))
            for region, facts in sorted(regions[name].items())
            if part == "train" or facts["nodule"] is not None
        ]
        write_text(folder / f"{part}.txt", "".join(f"{line}\n" for line in lines))


def dataset_name(prepared: Path, split: str = "") -> str:
    """The name by which recipes find a prepared folder, or one of its splits such as share-50."""
    if not (prepared / MANIFEST).is_file():
        raise MissingDataError(f"{prepared} is not prepared; make it with torchcaps lung prepare")
    place = prepared / "splits" / split if split else prepared
    if not (place / "train.txt").is_file():
        kind, _, name = split.partition("-")
        known = sorted(path.name.partition("-")[2] for path in (prepared / "splits").glob(f"{kind}-*"))
        raise UserError(f"{prepared} has no {_SPLITS[kind]} {name}; known: {', '.join(known) or 'none'}")
    return f"folder:{place}"
