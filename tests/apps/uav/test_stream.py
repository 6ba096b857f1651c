import io
import json
import math
import socket
from contextlib import contextmanager

import pytest

from torchcaps.apps.uav import FlightPlan, Localizer, simulate_flight
from torchcaps.apps.uav.filter import Estimate, PlainBackend
from torchcaps.apps.uav.stream import localize_lines

GOOD = {"time": 1.0, "forward": 20.0, "left": 0, "turn": 0, "heading": 0}


def answers(country, lines, images, sink=None, to_degrees=lambda x, y: (x / 1e5, y / 1e5)):
    likelihood = country.matching.likelihood("linear")
    localizer = Localizer(country.map, country.describer, likelihood, backend=PlainBackend())
    raw = io.BytesIO(
        b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    )
    found = localize_lines(localizer, raw, images, to_degrees, sink)
    return [json.loads(line) for line in found]


def test_lines_are_answered_as_the_localizer_answers(country, tmp_path):
    flight = simulate_flight(country.stack.dates(["summer"]), 16, FlightPlan(updates=3, step=30.0))
    flight.save(tmp_path)
    lines = [
        {
            "time": step.time,
            "forward": step.odometry.forward,
            "left": step.odometry.left,
            "turn": math.degrees(step.odometry.turn),
            "distance": step.odometry.travelled,
            "heading": math.degrees(step.heading),
            "image": step.image.name,
        }
        for step in flight.steps
    ]
    found = answers(country, lines, tmp_path / "images")
    likelihood = country.matching.likelihood("linear")
    localizer = Localizer(country.map, country.describer, likelihood, backend=PlainBackend())
    for step, image, answer in zip(flight.steps, flight.images, found, strict=True):
        expected = localizer.update(image, step.odometry, step.heading).estimate
        assert (answer["x"], answer["y"]) == pytest.approx((expected.x, expected.y), abs=0.01)
        assert answer["sigma"] == pytest.approx(expected.sigma, abs=0.01)
        assert answer["longitude"] == pytest.approx(expected.x / 1e5, abs=1e-6)
        assert answer["problems"] == []


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"{not json}\n", "no JSON"),
        (b"\xff\xfe\n", "no JSON"),
        (b"[" * 60_000 + b"\n", "no JSON"),
        (b'"text"\n', "no JSON object"),
        ({"forward": 1}, "has no time"),
        ({"time": "soon"}, "time is not a number"),
        ({"time": 0.5}, "is not after"),
        (b'{"time": 2, "image": "' + b"a" * 70_000 + b'"}\n', "bytes"),
    ],
)
def test_a_bad_line_is_answered_by_its_error_and_the_next_one_goes_on(bad, words, country, tmp_path):
    first, error, last = answers(country, [GOOD, bad, {**GOOD, "time": 3.0}], tmp_path)
    assert words in error["error"]
    assert error["error"].startswith("line 2 ")
    assert last["time"] == 3.0
    assert "x" in first


@pytest.mark.parametrize(
    "odd",
    [
        {"forward": None},
        {"forward": math.nan},
        {"forward": 1e300},
        {"forward": 1e300, "distance": 20.0},
        {"left": -1e300, "distance": 20.0},
        {"ahead": 1e308},
        {"image": "a\0b"},
        {"turn": 1e300},
        {"heading": 1e300},
        {"image": "../../secret.png"},
        {"image": {"a": 1}},
    ],
)
def test_odd_values_never_stop_the_flight(odd, country, tmp_path):
    found = answers(country, [GOOD, {**GOOD, "time": 2.0, **odd}, {**GOOD, "time": 3.0}], tmp_path)
    assert [answer["time"] for answer in found] == [1.0, 2.0, 3.0]
    assert all(math.isfinite(answer["x"]) for answer in found)


@contextmanager
def mavlink():
    """A sender, and a function that gives the message it sent."""
    dialect = pytest.importorskip("pymavlink.dialects.v20.common")
    from torchcaps.apps.uav.mavlink import MavlinkSender

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        with MavlinkSender(f"127.0.0.1:{receiver.getsockname()[1]}") as sender:
            yield sender, lambda: dialect.MAVLink(None).parse_buffer(receiver.recv(512))[0]


def test_estimates_arrive_as_mavlink(country, tmp_path):
    with mavlink() as (sender, receive):
        (answer,) = answers(country, [GOOD], tmp_path, sender.send)
        message = receive()
    assert message.get_type() == "GPS_INPUT"
    assert (message.lon / 1e7, message.lat / 1e7) == pytest.approx(
        (answer["longitude"], answer["latitude"]), abs=2e-7
    )
    assert message.horiz_accuracy == pytest.approx(answer["sigma"], abs=0.01)
    assert message.fix_type == (2 if answer["converged"] else 1)
    assert message.yaw / 100 == pytest.approx((90 - answer["heading"]) % 360, abs=0.02)
    assert message.time_usec == 1_000_000


def test_the_yaw_of_a_turned_projection_counts_from_north(country, tmp_path):
    def to_degrees(x, y):  # the y axis points 10 degrees to the right of north
        turn = math.radians(10)
        east, north = x * math.cos(turn) + y * math.sin(turn), y * math.cos(turn) - x * math.sin(turn)
        return east / 1e7, north / 1e7

    with mavlink() as (sender, receive):
        (answer,) = answers(country, [GOOD], tmp_path, sender.send, to_degrees)
        assert receive().yaw / 100 == pytest.approx((90 - answer["heading"] + 10) % 360, abs=0.05)


@pytest.mark.parametrize(("heading", "yaw"), [(90.0, 36_000), (0.0, 9_000), (180.0, 27_000), (100.0, 35_000)])
def test_a_yaw_counts_from_north_to_the_right_and_is_never_0(heading, yaw):
    with mavlink() as (sender, receive):
        sender.send(1.0, 0.0, 0.0, Estimate(0.0, 0.0, math.radians(heading), 1.0))
        assert receive().yaw == yaw


@pytest.mark.parametrize("time", [1.7e15, 1e300, 1e308])
def test_a_time_in_microseconds_does_not_end_the_flight(time, country, tmp_path):
    with mavlink() as (sender, receive):
        found = answers(country, [GOOD, {**GOOD, "time": time}], tmp_path, sender.send)
        assert [receive().time_usec for _ in found] == [1_000_000, 2**64 - 1]


@pytest.mark.parametrize(("converged", "fix"), [(True, 2), (False, 1)])
def test_a_fix_is_one_in_the_plane_whose_height_and_speed_are_to_be_ignored(converged, fix):
    dialect = pytest.importorskip("pymavlink.dialects.v20.common")
    with mavlink() as (sender, receive):
        sender.send(1.0, 0.0, 0.0, Estimate(0.0, 0.0, 0.0, 1.0, converged=converged))
        message = receive()
    names = ("ALT", "HDOP", "VDOP", "VEL_HORIZ", "VEL_VERT", "SPEED_ACCURACY", "VERTICAL_ACCURACY")
    assert message.ignore_flags == sum(getattr(dialect, f"GPS_INPUT_IGNORE_FLAG_{name}") for name in names)
    assert message.fix_type == fix


@pytest.mark.parametrize("address", ["", "14550", "host:", "host:0", "host:99999", ":1"])
def test_a_wrong_address_is_named(address):
    pytest.importorskip("pymavlink")
    from torchcaps.apps.uav.mavlink import MavlinkSender
    from torchcaps.core import UserError

    with pytest.raises(UserError, match="HOST:PORT"):
        MavlinkSender(address)
