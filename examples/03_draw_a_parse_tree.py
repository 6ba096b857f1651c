"""Draw which capsules made a network choose a class; give it the folder of a run to see a trained one."""

import sys
from pathlib import Path

import torch

from torchcaps import create_model
from torchcaps.data import load_dataset
from torchcaps.parse import capsule_maps, parse_tree
from torchcaps.train import load_run, load_split
from torchcaps.viz import draw_tree, to_png

torch.manual_seed(0)
if len(sys.argv) > 1:
    run = load_run(sys.argv[1])
    examples, pipeline = load_split(run, "test")  # of the data that the run learnt from
    batch = pipeline.for_evaluation(examples.images[:1])
    model, images, inputs = run.model, batch.images, batch.inputs
else:
    model = create_model("dr_capsnet_small")
    inputs = images = load_dataset("synthetic_mnist", "test").images[:1].float() / 255
with torch.no_grad():
    output = model.eval()(inputs, return_routing=True)
(where,) = capsule_maps(model)
tree = parse_tree(output.layers, grid=where.grid)
drawing = draw_tree(images[0], tree, field=where.field)
Path("parse_tree.png").write_bytes(to_png(drawing))
print(f"class {tree.chosen}, {len(tree.edges)} edges, drawn in parse_tree.png")
