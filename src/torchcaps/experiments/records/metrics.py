"""The metrics of the experiments: words, unit and direction of every number in a result row."""

from __future__ import annotations

from functools import partial

from torchcaps.core import Metric, metric_of, register_metrics

_share = partial(Metric, unit="%", scale=100.0)
_count = partial(Metric, digits=0)

register_metrics(
    # trees and pruning
    _share("quantized_accuracy", "quantized accuracy", "higher"),
    _share("even_accuracy", "accuracy with even couplings", "neither"),
    _share("plain_accuracy", "accuracy as trained", "higher"),
    _share("pruned_accuracy", "accuracy with pruning", "higher"),
    *(
        _share(f"{change}_accuracy", f"accuracy, {change}", "higher")
        for change in ("rotated", "warped", "occluded")
    ),
    Metric("entropy", "entropy", "lower", "bits"),
    Metric("plain_entropy", "entropy as trained", "lower", "bits"),
    Metric("pruned_entropy", "entropy with pruning", "lower", "bits"),
    _count("keys", "parse trees", "lower"),
    _share("sparsity", "sparsity", "higher"),
    _count("parameters_left", "parameters left", "lower"),
    _count("parameters_shrunk", "parameters", "lower"),
    _share("parameters_share", "parameters share", "lower"),
    _share("operations_share", "operations share", "lower"),
    _share("cpu_share_1", "share of the time, batch 1", "lower"),
    _share("cpu_share_128", "share of the time, batch 128", "lower"),
    Metric("decided", "decided children", "neither"),
    Metric("capsules_in_tree", "capsules in tree", "lower"),
    _share("capsules_in_tree_share", "capsules in tree share", "lower"),
    _share("empty_share", "empty trees", "neither"),
    _share("weak_share", "couplings rounded to zero", "neither"),
    _share("strong_share", "couplings above one half", "neither"),
    # maps and reconstructions
    _share("on_object_share", "saliency on the object", "higher"),
    _share("even_map_share", "even map on the object", "neither"),
    _share("area_share", "area of the object", "neither"),
    Metric("peak", "peak of the map", "neither"),
    Metric("deletion_saliency", "deletion by saliency", "higher", "points"),
    Metric("deletion_contribution", "deletion by contribution", "higher", "points"),
    Metric("deletion_random", "deletion at random", "neither", "points"),
    Metric("reconstruction_error", "reconstruction error", "lower"),
    Metric("class_mean_error", "error of the class mean", "neither"),
    *(
        Metric(f"auc_{kind}", f"AUC, {words}", "higher")
        for kind, words in (
            ("fashion_mnist", "Fashion-MNIST"),
            *((kind, kind) for kind in ("noise", "blur", "occlusion", "mirrored", "inverted")),
        )
    ),
    # routing
    _count("iterations", "iterations", "neither"),
    Metric("parents", "parents", "neither"),
    Metric("largest_coupling", "largest coupling", "neither"),
    Metric("rounds", "rounds", "neither"),
    Metric("milliseconds", "time", "lower", "ms"),
    # robustness
    _share("affnist_style_accuracy", "affNIST-style accuracy", "higher"),
    _share("affnist_style_quantized_accuracy", "affNIST-style accuracy, quantized", "higher"),
    Metric("affnist_style_entropy", "affNIST-style entropy", "lower", "bits"),
    _share("undertrained_accuracy", "accuracy, under-trained", "higher"),
    _share("undertrained_affnist_style_accuracy", "affNIST-style accuracy, under-trained", "higher"),
    Metric("undertrained_affnist_style_entropy", "affNIST-style entropy, under-trained", "lower", "bits"),
    _share("undertrained_sparsity", "sparsity, under-trained", "higher"),
    *(
        metric
        for views in ("familiar", "novel")
        for metric in (
            _share(f"{views}_accuracy", f"{views} views, accuracy", "higher"),
            _share(f"{views}_quantized_accuracy", f"{views} views, accuracy, quantized", "higher"),
            Metric(f"{views}_entropy", f"{views} views, entropy", "lower", "bits"),
        )
    ),
    Metric("best_epoch", "epoch that was kept, from 0", "neither"),
    Metric("whole_image_error", "error of the image of both", "neither"),
    # nodules
    Metric("region_dice", "Dice of regions", "higher", digits=4),
    Metric("region_dice_low", "Dice of regions, 2.5th percentile", "neither", digits=4),
    Metric("region_dice_high", "Dice of regions, 97.5th percentile", "neither", digits=4),
    _share("missed_share", "missed regions", "lower"),
    Metric("false_marks", "false marks a scan", "lower"),
    _share("found_nodules_share", "nodules found in whole scans", "higher"),
    Metric("step_ms", "training step", "lower", "ms"),
    # trunks
    _share("trunk_accuracy", "trunk accuracy", "higher"),
    _count("bottleneck", "bottleneck", "neither", "channels"),
    _count("primary_capsules", "primary capsules", "neither"),
    Metric("forward_mflops", "operations of an image", "lower", "MFLOP"),
    Metric("forward_gmacs", "forward operations", "lower", "GMAC"),
    Metric("training_gflops", "training operations", "lower", "GFLOP"),
    Metric("gpu_memory_gb", "GPU memory", "lower", "GB"),
    Metric("epoch_seconds", "epoch time", "lower", "s"),
    Metric("demo_seconds", "whole demonstration", "lower", "s"),
    Metric("joules_per_image", "energy of an image", "lower", "J"),
    *(
        Metric(f"{device}_ms_{batch}", f"{device.upper()}, batch {batch}", "lower", "ms")
        for device in ("cpu", "gpu")
        for batch in (1, 128)
    ),
    # rotations
    Metric("novel_error", "median rotation error on new rotations", "lower", "°"),
    _share("leaked_share", "test rotations that were trained on", "neither"),
    Metric("training_minutes", "training time", "lower", "min"),
    # flights
    _share("converged_share", "flights that converge", "higher"),
    _share("found_share", "flights that are found", "higher"),
    Metric("updates_to_convergence", "updates to convergence", "lower", digits=1),
    Metric("converged_error", "mean error after convergence", "lower", "m", digits=1),
    Metric("final_error", "median error at the end", "lower", "m", digits=1),
    _share("inside_95_share", "truth inside the 95 % region", "neither"),
    Metric("map_mb", "size of the map", "lower", "MB", digits=1),
)


def metric_words(key: str) -> str:
    """What a key of a row is called: its split and the title of its metric."""
    metric = metric_of(key)
    return f"{key.removesuffix(metric.name).replace('_', ' ')}{metric.title}"


def metric_heading(key: str) -> str:
    """What a key of a row is called at the head of a column, with its unit."""
    unit = metric_of(key).unit
    return f"{metric_words(key)}, {unit}" if unit else metric_words(key)
