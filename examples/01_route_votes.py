"""Route votes by hand: three children agree on one parent, and routing finds it."""

import torch

from torchcaps.routing import dynamic_routing

torch.manual_seed(0)
agreed = torch.tensor([1.0, -1.0, 0.5, 0.0])
votes = 0.5 * torch.randn(1, 5, 2, 4)  # 5 children predict the pose of 2 parents, at random
votes[0, :3, 0] = agreed + 0.05 * torch.randn(3, 4)  # the first three agree on parent 0

for iterations in (1, 3, 10):
    routed = dynamic_routing(votes, torch.ones(1, 5), iterations=iterations)
    shares = ", ".join(f"{share:.2f}" for share in routed.coupling[0, :, 0])
    print(f"{iterations:>2} iterations: parent 0 is {routed.activations[0, 0]:.2f} active; shares {shares}")
