"""Estimates as MAVLink messages over UDP, as an autopilot takes them from a receiver of satellites."""

from __future__ import annotations

import math
import socket
from contextlib import suppress
from types import TracebackType

from torchcaps.core import UserError, need

from .filter import Estimate

_NO_FIX, _FIX_2D = 1, 2
# altitude, both dilutions, both speeds, the accuracies of speed and altitude
_IGNORED = 1 | 2 | 4 | 8 | 16 | 32 | 128
_SYSTEM, _RECEIVER = 1, 220  # the sender, and its part: a receiver of satellites (MAV_COMP_ID_GPS)
_WHOLE_TURN = 36_000  # hundredths of a degree
_LATEST = 2**64 - 1  # microseconds that a message can state


class MavlinkSender:
    """Sends a GPS_INPUT for each estimate: a fix in the plane where it has converged, else no fix.

    Args:
        address: HOST:PORT that listens.
    """

    def __init__(self, address: str) -> None:
        host, colon, port = address.rpartition(":")
        if not (colon and host and port.isdecimal() and 0 < int(port) < 65536):
            raise UserError(f"MAVLink is sent to HOST:PORT, such as 127.0.0.1:14550, not {address!r}")
        dialect = need("pymavlink.dialects.v20.common")
        self._mavlink = dialect.MAVLink(None, srcSystem=_SYSTEM, srcComponent=_RECEIVER)
        try:
            family, kind, _, _, place = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)[0]
        except OSError as error:
            raise UserError(f"MAVLink cannot be sent to {address}: {error}") from error
        self._socket, self._place = socket.socket(family, kind), place

    def send(self, time: float, longitude: float, latitude: float, estimate: Estimate) -> None:
        """Send an estimate, whose heading counts from east; `time` is in seconds. Nothing is sent twice.

        A time later than a message can state, as of a clock that counts microseconds, is sent as the latest.
        """
        east = math.degrees(estimate.heading)
        yaw = round(100 * (90 - east)) % _WHOLE_TURN or _WHOLE_TURN  # 0 means unknown; north is 360 degrees
        message = self._mavlink.gps_input_encode(
            time_usec=int(min(max(time, 0.0) * 1e6, _LATEST)),
            gps_id=0,
            ignore_flags=_IGNORED,
            time_week_ms=0,
            time_week=0,
            fix_type=_FIX_2D if estimate.converged else _NO_FIX,
            lat=round(latitude * 1e7),
            lon=round(longitude * 1e7),
            alt=0.0,
            hdop=0.0,
            vdop=0.0,
            vn=0.0,
            ve=0.0,
            vd=0.0,
            speed_accuracy=0.0,
            horiz_accuracy=estimate.sigma,
            vert_accuracy=0.0,
            satellites_visible=0,
            yaw=yaw,
        )
        with suppress(OSError):  # nobody may be listening yet
            self._socket.sendto(message.pack(self._mavlink), self._place)

    def close(self) -> None:
        """Free the socket."""
        self._socket.close()

    def __enter__(self) -> MavlinkSender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
