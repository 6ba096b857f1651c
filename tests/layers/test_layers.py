import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import Capsules, UserError, squash
from torchcaps.layers import (
    Conv3dRoutingCaps,
    ConvCaps2d,
    ConvDecoder,
    ConvStage,
    FcCaps,
    FcDecoder,
    LocalConvCaps2d,
    LocalDeconvCaps2d,
    PrimaryCaps,
    SelectedFcCaps,
    cast_votes,
    map_sizes,
    pad_same,
    smallest_image,
)

M, N, O, OUT, D, P, K = 4, 5, 3, 7, 2, 6, 3


@pytest.mark.compile  # the run-time type checks would answer first
def test_primary_capsules_ask_for_the_axis_of_the_batch():
    with pytest.raises(UserError, match=r"maps \(batch, channels, height, width\), got \(3, 9, 9\)"):
        PrimaryCaps(3, 2, 4, kernel_size=3)(torch.rand(3, 9, 9))


def grid(batch=2, types=O, pose=D, height=M, width=N):
    poses = torch.randn(batch, height, width, types, pose)
    return Capsules(poses, poses.norm(dim=-1))


@pytest.mark.parametrize(
    ("layer", "count"),
    [
        (FcCaps(M * N * O, OUT, D, P), M * N * O * OUT * D * P),
        (FcCaps(M * N * O, OUT, D, P, matrices=1), OUT * D * P),
        (FcCaps(M * N * O, OUT, D, P, matrices=M * N * O), M * N * O * OUT * D * P),
        (FcCaps(M * N * O, OUT, D, P, matrices=O), O * OUT * D * P),
        (ConvCaps2d(O, OUT, D, P, kernel_size=K), K * K * O * OUT * D * P),
        (ConvCaps2d(O, OUT, D, P, kernel_size=K, share_types=True), K * K * OUT * D * P),
    ],
    ids=[
        "fc",
        "fc shared",
        "grid to fc",
        "grid to fc shared over positions",
        "conv",
        "conv shared over types",
    ],
)
def test_weight_counts_of_the_thesis_table(layer, count):
    assert layer.weight.numel() == count
    assert layer(grid()).poses.shape[-2:] == (OUT, P)


@pytest.mark.parametrize(
    "layer", [FcCaps(40, 10, 8, 16), ConvCaps2d(8, 8, 8, 16, kernel_size=3)], ids=["fc", "conv"]
)
def test_matrices_start_with_a_deviation_of_a_tenth_and_biases_at_a_tenth(layer):
    """With a deviation of one, as much public code has it, training does not start."""
    assert layer.weight.std().item() == pytest.approx(0.1, rel=0.02)
    assert layer.weight.mean().item() == pytest.approx(0, abs=0.002)
    assert_close(layer.routing.bias.detach(), torch.full_like(layer.routing.bias, 0.1))


def test_votes_are_matrix_products():
    poses, weight = torch.randn(2, 6, 3), torch.randn(6, 3, 4, 5)
    votes = cast_votes(poses, weight)
    assert_close(votes[1, 2, 3], poses[1, 2] @ weight[2, :, 3])


def test_children_share_matrices_by_type():
    capsules = grid(types=2)
    weight = torch.randn(2, D, 4, 5)
    votes = cast_votes(capsules.poses.flatten(1, 3), weight)
    for row in range(M):
        for column in range(N):
            for kind in range(2):
                child = (row * N + column) * 2 + kind
                assert_close(votes[0, child, 1], capsules.poses[0, row, column, kind] @ weight[kind, :, 1])


@pytest.mark.parametrize("share_types", [False, True])
@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1)])
def test_convolution_is_a_dense_layer_in_each_window(share_types, stride, padding):
    capsules = grid()
    layer = ConvCaps2d(
        O, OUT, D, P, kernel_size=K, stride=stride, padding=padding, share_types=share_types, routing="em"
    )
    routed = layer(capsules)
    padded = torch.nn.functional.pad(capsules.poses, (0, 0, 0, 0, *[padding] * 4))
    lengths = torch.nn.functional.pad(capsules.activations, (0, 0, *[padding] * 4))
    row, column = routed.poses.shape[1] - 1, routed.poses.shape[2] - 1
    rows, columns = (slice(stride * k, stride * k + K) for k in (row, column))
    votes = torch.stack(
        [
            padded[:, rows, columns][:, m, n, t]
            @ layer.weight[(0 if share_types else t * K * K) + m * K + n].flatten(1)
            for t in range(O)
            for m in range(K)
            for n in range(K)
        ],
        dim=1,
    ).unflatten(-1, (OUT, P))
    window = lengths[:, rows, columns].permute(0, 3, 1, 2).flatten(1)
    expected = layer.routing(votes, window)
    assert_close(routed.poses[:, row, column], expected.poses)
    assert_close(routed.activations[:, row, column], expected.activations)
    assert_close(routed.coupling[:, row, column], expected.coupling)


def test_primary_capsules_read_channels_as_poses():
    layer = PrimaryCaps(3, types=4, pose=5, kernel_size=3, stride=2)
    images = torch.randn(2, 3, 9, 11)
    capsules = layer(images)
    assert capsules.poses.shape == (2, 4, 5, 4, 5)
    channels = layer.conv(images)[1, 5 * 2 : 5 * 3, 3, 4]
    assert_close(capsules.poses[1, 3, 4, 2], squash(channels))
    assert_close(capsules.activations, capsules.poses.norm(dim=-1))


def test_same_padding_gives_the_rounded_up_size():
    for size in (7, 8, 24):
        for stride in (1, 2, 3):
            padded = pad_same(torch.zeros(1, 1, size, size), 5, stride)
            assert torch.nn.functional.conv2d(padded, torch.zeros(1, 1, 5, 5), stride=stride).shape[-1] == -(
                -size // stride
            )


def test_sizes_through_convolutions():
    stages = [ConvStage("a", 9), ConvStage("b", 9, 2)]
    assert map_sizes(28, stages) == [(20, 20), (6, 6)]
    smallest = smallest_image(stages)
    assert map_sizes(smallest, stages)[-1] == (1, 1)
    with pytest.raises(UserError, match=f"after layer 'b'.*the smallest that works is {smallest} px"):
        map_sizes(smallest - 1, stages)


def test_height_and_width_go_through_convolutions_each_on_its_own():
    stages = [ConvStage("a", 9), ConvStage("b", 9, 2, "same")]
    assert map_sizes((28, 40), stages) == [(20, 32), (10, 16)]
    message = r"an image of 8x40 px leaves no map after layer 'a'.*9 px a side: set model.image_size=\[9,40\]"
    with pytest.raises(UserError, match=message):
        map_sizes((8, 40), stages)


@pytest.mark.parametrize("size", [28, 32, 45, 64])
def test_decoders_draw_images_of_the_size_asked_for(size):
    poses, chosen = torch.rand(2, 4, 8), torch.tensor([1, 3])
    for decoder in (FcDecoder(4, 8, (3, size, size)), ConvDecoder(8, (3, size, size))):
        assert decoder(poses, chosen).shape == (2, 3, size, size)


def test_decoders_see_the_chosen_capsule_alone():
    poses, chosen = torch.rand(2, 4, 8), torch.tensor([1, 3])
    changed = poses.clone()
    changed[0, [0, 2, 3]] = 9
    changed[1, [0, 1, 2]] = 9
    for decoder in (FcDecoder(4, 8, (1, 28, 28)), ConvDecoder(8, (1, 28, 28)).eval()):
        assert_close(decoder(poses, chosen), decoder(changed, chosen))


def test_an_unmasked_decoder_sees_all_capsules():
    poses, decoder = torch.rand(2, 4, 8), FcDecoder(4, 8, (1, 28, 28), masked=False)
    first, second = (decoder(poses, torch.tensor(chosen)) for chosen in ([1, 3], [0, 0]))
    assert_close(first, second)
    assert not torch.equal(decoder(poses.flip(1), torch.tensor([1, 3])), first)


def test_the_deconvolution_decoder_has_the_widths_of_its_paper():
    for size, expected in ((28, [64, 32, 16, 1]), (33, [64, 32, 16, 8, 1])):
        layers = ConvDecoder(8, (1, size, size)).layers
        widths = [layer.out_channels for layer in layers if isinstance(layer, torch.nn.ConvTranspose2d)]
        assert widths == expected


def test_the_decoder_of_the_paper_has_its_parameters():
    assert sum(p.numel() for p in FcDecoder(10, 16, (1, 28, 28)).parameters()) == 1_411_344


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FcCaps(10, 4, 2, 3, matrices=4), "10 children cannot share 4 matrices"),
        (lambda: FcCaps(10, 4, 6, 9, pose_rows=4), "6 and 9 dimensions are no matrices of 4 rows"),
        (lambda: FcCaps(10, 4, 2, 3)(grid()), "expects 10 children of 2 dimensions, got 60 of 2"),
        (
            lambda: ConvCaps2d(2, 4, 2, 3, kernel_size=3)(grid()),
            "expects 2 types of 2 dimensions, got 3 of 2",
        ),
        (lambda: ConvCaps2d(3, 4, 2, 3, kernel_size=5)(grid()), "kernel 5 leaves nothing of a 4x5 map"),
    ],
)
def test_wrong_sizes_are_explained(make, message):
    with pytest.raises(UserError, match=message):
        make()


@pytest.mark.compile  # the run-time type checks would answer first
def test_an_unknown_padding_of_primary_capsules_is_refused():
    with pytest.raises(UserError, match="padding must be one of valid, same, symmetric, got 'zeros'"):
        PrimaryCaps(8, 2, 4, kernel_size=3, padding="zeros")


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (ConvCaps2d, {"kernel_size": 0}),
        (ConvCaps2d, {"kernel_size": 3, "stride": 0}),
        (ConvCaps2d, {"kernel_size": 3, "padding": -1}),
        (LocalConvCaps2d, {"kernel_size": -1}),
        (LocalConvCaps2d, {"kernel_size": 3, "stride": 0}),
        (LocalDeconvCaps2d, {"kernel_size": 0, "stride": 0}),
        (Conv3dRoutingCaps, {"kernel_size": 0}),
    ],
)
def test_a_window_without_size_or_step_is_refused(make, settings):
    with pytest.raises(UserError, match=r"(kernel_size|stride|padding) must be at least"):
        make(2, 3, 4, 5, **settings)


@pytest.mark.parametrize("settings", [{"kernel_size": (3, 0)}, {"kernel_size": 3, "stride": 0}])
def test_primary_capsules_without_a_window_are_refused(settings):
    with pytest.raises(UserError, match=r"(kernel_size|stride) must be at least 1, got 0"):
        PrimaryCaps(4, 2, 3, **settings)


def test_routing_stays_in_float32_under_autocast():
    layer = FcCaps(M * N * O, OUT, D, P)
    with torch.autocast("cpu", torch.bfloat16):
        routed = layer(grid())
    assert routed.poses.dtype == torch.float32


def test_a_weight_that_a_parametrization_computes_may_be_in_half_precision_under_autocast():
    class Doubled(torch.nn.Module):
        def forward(self, weight):
            return (weight.flatten(1) @ (2 * torch.eye(weight[0].numel()))).view_as(weight)

    layer = FcCaps(M * N * O, OUT, D, P)
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", Doubled())
    children = grid()
    with torch.autocast("cpu", torch.bfloat16):
        routed = layer(children)
    assert_close(routed.poses.float(), layer(children).poses, rtol=0.05, atol=0.02)


def test_children_without_a_vote_are_split_evenly_until_pruning_says_otherwise():
    layer = SelectedFcCaps(6, 3, 2, 4, voters=2)
    poses = torch.randn(1, 6, 2)
    coupling = layer(Capsules(poses, poses.norm(dim=-1))).coupling
    assert_close(coupling.sum(-1), torch.ones(1, 6))
    assert_close(coupling[:, 2:], torch.full((1, 4, 3), 1 / 3))


@pytest.mark.parametrize(("side", "widths", "below"), [(28, 3, 7), (32, 3, 8), (33, 4, 5), (64, 4, 8)])
def test_a_convolutional_decoder_begins_as_small_as_that_of_deepcaps(side, widths, below):
    decoder = ConvDecoder(6, (3, side, side))
    layers = [layer for layer in decoder.layers if isinstance(layer, torch.nn.ConvTranspose2d)]
    assert decoder.map_shape == (16, below, below)
    assert [layer.out_channels for layer in layers] == [*(64, 32, 16, 8)[:widths], 3]
    assert (layers[-1].bias == 0.1).all()  # with zero, a rectifier may never be active
