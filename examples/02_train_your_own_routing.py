"""Use a routing of your own in a published architecture and train it for a moment."""

import torch

from torchcaps import create_model
from torchcaps.core import Routed, squash
from torchcaps.data import load_dataset
from torchcaps.losses import margin_loss


def one_shot_routing(votes, activations):
    """Couplings from the agreement with the mean vote, without iterations."""
    mean = votes.mean(-3)
    coupling = torch.einsum("...iod,...od->...io", votes, mean).softmax(-1)
    poses = squash(torch.einsum("...io,...iod->...od", coupling, votes))
    return Routed(poses, poses.norm(dim=-1), coupling)


torch.manual_seed(0)
data = load_dataset("synthetic_mnist", "train")
model = create_model("dr_capsnet_mnist", stem_channels=16, primary_types=4, routing=one_shot_routing)
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
for step in range(30):
    images, labels = data.at(torch.randint(len(data), (32,)))
    output = model(images.float() / 255)
    loss = margin_loss(output.activations, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        accuracy = (output.activations.argmax(1) == labels).float().mean()
        print(f"step {step + 1}: loss {loss:.3f}, accuracy {accuracy:.0%}")
