"""Localization of unmanned aerial vehicles on orthophotos, without satellite navigation."""

from .building_ratio import BuildingRatio, Segmenter, building_ratio, colour_segmenter, onnx_segmenter
from .compile import CompileSettings, StorageLoss, compile_map, grid_of, storage_loss
from .describe import AbBrief, Describer, NetworkDescriber, load_describer
from .flight import FlightStep, read_flight, write_flight
from .localize import Localizer, Update, read_image
from .map_file import CompiledMap, MapInfo, open_map, verify_map, write_map
from .maps import open_maps, read_maps, write_geotiff
from .matching import LIKELIHOODS, Matching, Pairing, load_matching, measure_matching
from .orthoproject import Camera, Orthophoto, View, orthoproject
from .perspective import Look
from .results import Recorder, record_flight, summarize, write_results
from .simulate import Flight, FlightPlan, simulate_flight
from .terrain import SEASONS, Terrain, write_seasons
from .train import train_descriptor

__all__ = [
    "LIKELIHOODS",
    "SEASONS",
    "AbBrief",
    "BuildingRatio",
    "Camera",
    "CompileSettings",
    "CompiledMap",
    "Describer",
    "Flight",
    "FlightPlan",
    "FlightStep",
    "Localizer",
    "Look",
    "MapInfo",
    "Matching",
    "NetworkDescriber",
    "Orthophoto",
    "Pairing",
    "Recorder",
    "Segmenter",
    "StorageLoss",
    "Terrain",
    "Update",
    "View",
    "building_ratio",
    "colour_segmenter",
    "compile_map",
    "grid_of",
    "load_describer",
    "load_matching",
    "measure_matching",
    "onnx_segmenter",
    "open_map",
    "open_maps",
    "orthoproject",
    "read_flight",
    "read_image",
    "read_maps",
    "record_flight",
    "simulate_flight",
    "storage_loss",
    "summarize",
    "train_descriptor",
    "verify_map",
    "write_flight",
    "write_geotiff",
    "write_map",
    "write_results",
    "write_seasons",
]
