"""The tasks that can be trained, each by its name."""

from .api import TASKS, Answer, AnyTask, Evaluation, Meter, Task, task_named
from .classification import Classification
from .confusion import Confusion
from .overlap import Overlap
from .pose import Pose, symmetric_angle
from .retrieval import Retrieval
from .segmentation import Segmentation, predicted_masks

__all__ = [
    "TASKS",
    "Answer",
    "AnyTask",
    "Classification",
    "Confusion",
    "Evaluation",
    "Meter",
    "Overlap",
    "Pose",
    "Retrieval",
    "Segmentation",
    "Task",
    "predicted_masks",
    "symmetric_angle",
    "task_named",
]
