"""The metrics of the robustness experiments, beside those that suites register."""

from __future__ import annotations

from functools import partial

from torchcaps.core import Metric, register_metrics

_share = partial(Metric, better="higher", unit="%", scale=100.0)
_bits = partial(Metric, better="lower", unit="bits")

register_metrics(
    _share("affnist_style_accuracy", "affNIST-style accuracy"),
    _share("affnist_style_quantized_accuracy", "affNIST-style accuracy, quantized"),
    _bits("affnist_style_entropy", "affNIST-style entropy"),
    _share("undertrained_accuracy", "accuracy, under-trained"),
    _share("undertrained_affnist_style_accuracy", "affNIST-style accuracy, under-trained"),
    _bits("undertrained_affnist_style_entropy", "affNIST-style entropy, under-trained"),
    _share("undertrained_sparsity", "sparsity, under-trained"),
    _share("familiar_accuracy", "familiar views, accuracy"),
    _share("familiar_quantized_accuracy", "familiar views, accuracy, quantized"),
    _bits("familiar_entropy", "familiar views, entropy"),
    _share("novel_accuracy", "novel views, accuracy"),
    _share("novel_quantized_accuracy", "novel views, accuracy, quantized"),
    _bits("novel_entropy", "novel views, entropy"),
    Metric("best_epoch", "epoch that was kept, from 0", "neither"),
    Metric("whole_image_error", "error of the image of both", "neither"),
)
