"""What is said of capsules and can be checked where the truth is known, decided by rows."""

from __future__ import annotations

from ..plan import Claim, larger, larger_metric, our_claim
from .networks import CONV, DR, ENTROPY, GAMMA, ONE_ROUND, REM, SHARED

CHAPTER = "robustness"
CLUTTER, IMAGES, SCENES = "robust:partwhole-clutter", "robust:partwhole-images", "robust:partwhole-scenes"
PAIRS, AFFNIST = "robust:multimnist", "tab:results-affnist"
STRENGTHS = (0.0, 0.3, 0.6, 1.0)
COUNTS = (1_000, 4_000, 16_000)
SHIFTS = (4, 6)
_CLUTTERED = STRENGTHS[1:]


def at_clutter(network: str, strength: float) -> str:
    """The setting of a network and a strength of clutter."""
    return f"{network}, clutter {strength:g}"


def at_count(network: str, count: int) -> str:
    """The setting of a network and a number of training images."""
    return f"{network}, {count:,} images"


def at_shift(network: str, shift: int) -> str:
    """The setting of a network and the pixels by which overlaid digits are shifted."""
    return f"{network}, shift {shift}"


def _pairs(more: str, less: str, strengths: tuple[float, ...] = STRENGTHS) -> list[tuple[str, str]]:
    return [(at_clutter(more, strength), at_clutter(less, strength)) for strength in strengths]


def _over_clutter(*networks: str) -> list[str]:
    return [at_clutter(network, strength) for network in networks for strength in STRENGTHS]


_OF_CAPSULES = (DR, ONE_ROUND, GAMMA, SHARED, REM, ENTROPY)
CLUTTER_CLAIMS = (
    our_claim(
        "Without clutter the convolutional network is ahead of every capsule network of its size.",
        larger(
            CLUTTER,
            "test_accuracy",
            [(at_clutter(CONV, 0.0), at_clutter(network, 0.0)) for network in _OF_CAPSULES],
            any_budget=False,  # kinds of networks learn at different rates
        ),
    ),
    our_claim(
        "In clutter DR-CapsNet+REM is ahead of the convolutional network of its size.",
        larger(CLUTTER, "test_accuracy", _pairs(REM, CONV, _CLUTTERED), any_budget=False),
    ),
    our_claim(
        "Three rounds of routing classify better than one.",
        larger(CLUTTER, "test_accuracy", _pairs(DR, ONE_ROUND)),
    ),
    Claim(
        "DR-CapsNet classifies worse when its couplings are made even: routing matters.",
        larger_metric(CLUTTER, "test_accuracy", "accuracy_with_even", _over_clutter(DR)),
    ),
    our_claim(
        "gamma-CapsNet classifies worse when its couplings are made even: its routing matters.",
        larger_metric(CLUTTER, "test_accuracy", "accuracy_with_even", _over_clutter(GAMMA)),
    ),
    Claim(
        "With REM less of what the class capsules receive comes from clutter.",
        larger(CLUTTER, "contribution_on_clutter", _pairs(DR, REM, _CLUTTERED)),
    ),
    our_claim(
        "Edges of carved trees are right more often than those of random trees.",
        larger_metric(CLUTTER, "tree_precision", "random_tree_precision", _over_clutter(DR, REM)),
    ),
    our_claim(
        "Edges of carved trees are right more often than those of trees of even couplings.",
        larger_metric(CLUTTER, "tree_precision", "even_tree_precision", _over_clutter(DR, REM)),
    ),
    our_claim(
        # types without a preference are a little purer too, by chance
        "Types of primary capsules prefer parts: they are purer than one type for all would be, by our rule "
        "by a point.",
        larger_metric(CLUTTER, "part_purity", "part_purity_base", _over_clutter(DR, REM), by=1.0),
    ),
    our_claim(
        "REM makes the pose of the class capsule follow a turn of the object more closely.",
        larger(CLUTTER, "equivariance_error", _pairs(DR, REM)),
    ),
)
IMAGES_CLAIMS = (
    Claim(
        "DR-CapsNet needs fewer images than the convolutional network of its size.",
        larger(
            IMAGES,
            "test_accuracy",
            [(at_count(DR, count), at_count(CONV, count)) for count in COUNTS],
            any_budget=False,
        ),
    ),
)
SCENES_CLAIMS = (
    our_claim(
        "gamma-CapsNet, of two routed layers, understands scenes of objects of parts better than DR-CapsNet, "
        "of one.",
        larger(SCENES, "test_accuracy", [(f"{GAMMA}, scenes", f"{DR}, scenes")], any_budget=False),
    ),
    our_claim(
        "gamma-CapsNet is ahead of the convolutional network of its size on scenes.",
        larger(SCENES, "test_accuracy", [(f"{GAMMA}, scenes", f"{CONV}, scenes")], any_budget=False),
    ),
)
PAIRS_CLAIMS = (
    our_claim(
        "Three rounds of routing tell overlapping digits apart better than one.",
        larger(
            PAIRS,
            "test_pair_accuracy",
            [(at_shift(DR, shift), at_shift(ONE_ROUND, shift)) for shift in SHIFTS],
        ),
    ),
    Claim(
        "DR-CapsNet tells overlapping digits apart better than the convolutional network of its size.",
        larger(
            PAIRS,
            "test_pair_accuracy",
            [(at_shift(DR, shift), at_shift(CONV, shift)) for shift in SHIFTS],
            any_budget=False,
        ),
    ),
    our_claim(
        "A capsule describes its digit, not its class alone: it is drawn better than by the class mean.",
        larger_metric(
            PAIRS, "class_mean_error", "reconstruction_error", [at_shift(DR, shift) for shift in SHIFTS]
        ),
    ),
)
AFFNIST_CLAIMS = (
    Claim(
        "DR-CapsNet with REM is more accurate on affNIST-style digits than without.",
        larger(
            AFFNIST,
            "affnist_style_quantized_accuracy",
            [("DR-CapsNet+REM", "DR-CapsNet+Q")],
            any_budget=False,  # after few epochs the network without REM does not route yet
        ),
    ),
    Claim(
        "DR-CapsNet is more accurate on affNIST-style digits than the convolutional network of its size.",
        larger(
            AFFNIST,
            "affnist_style_accuracy",
            [(f"{DR}, 1.8 million parameters", f"{CONV}, 1.8 million parameters")],
            any_budget=False,
        ),
    ),
    Claim(
        "Trained to the end, DR-CapsNet with REM has a lower entropy than under-trained.",
        larger_metric(
            AFFNIST,
            "undertrained_affnist_style_entropy",
            "affnist_style_entropy",
            ["DR-CapsNet+REM"],
            any_budget=False,
        ),
    ),
)
VIEWED = ("DR-CapsNet", "gamma-CapsNet", "Efficient-CapsNet", "DeepCaps")
AXES = {"elevation": "φ", "azimuth": "ψ"}


def view_claims(label: str) -> tuple[Claim, ...]:
    """That REM lowers the entropy of every network, on familiar and on novel views."""
    pairs = [(f"{name} ({axis})+Q", f"{name} ({axis})+REM") for name in VIEWED for axis in AXES.values()]
    return tuple(
        Claim(
            f"REM lowers the entropy of every network on {views} views.",
            larger(label, f"{views}_entropy", pairs, any_budget=False),
        )
        for views in ("familiar", "novel")
    )
