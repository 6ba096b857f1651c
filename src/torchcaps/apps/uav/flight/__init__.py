"""Flights: their logs, what a camera sees of the ground below, and simulated ones."""

from .flight import (
    FlightStep,
    read_flight,
    require_images,
    require_odometry,
    require_on_map,
    step_of_row,
    time_text,
    truth_cells,
    write_flight,
)
from .orthoproject import Camera, Orthophoto, View, orthoproject
from .perspective import Look
from .projection import ToDegrees, compass_of_grid, degrees_of
from .simulate import Flight, FlightPlan, simulate_flight

__all__ = [
    "Camera",
    "Flight",
    "FlightPlan",
    "FlightStep",
    "Look",
    "Orthophoto",
    "ToDegrees",
    "View",
    "compass_of_grid",
    "degrees_of",
    "orthoproject",
    "read_flight",
    "require_images",
    "require_odometry",
    "require_on_map",
    "simulate_flight",
    "step_of_row",
    "time_text",
    "truth_cells",
    "write_flight",
]
