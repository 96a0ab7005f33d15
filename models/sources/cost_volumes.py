"""Stereo, optical flow and tracking: cost volumes and correlations."""

import torch
from torch import nn
from torch.nn import functional

from sources.recipe import BOTH, Source, image, source


class Stereo(nn.Module):
    """Disparity by soft argmin over absolute differences of features."""

    def __init__(self, channels, disparities=8):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(),
                                      nn.Conv2d(8, channels, 3, padding=1))
        self.disparities = disparities

    def forward(self, left, right):
        a, b = self.features(left), self.features(right)
        planes = []
        for d in range(self.disparities):
            shifted = functional.pad(b, (d, 0))[..., :b.shape[-1]]
            planes.append((a - shifted).abs().sum(1, keepdim=True))
        weights = torch.softmax(-torch.cat(planes, 1), 1)
        numbers = torch.arange(self.disparities, dtype=torch.float32).reshape(1, -1, 1, 1)
        return (weights * numbers).sum(1, keepdim=True)


def stereo_of(channels):
    return Source(Stereo(channels), {"left": image(), "right": image()})


@source(*BOTH, CostVolume=1)
def stereo():
    return stereo_of(1)


@source(*BOTH, CostVolume=4)
def stereo_of_four_channels():
    return stereo_of(4)


class Flow(nn.Module):
    """Dot products of features over a window of displacements, like PWC-Net's correlation."""

    def __init__(self, reach=2):
        super().__init__()
        self.features = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.decoder = nn.Conv2d((2 * reach + 1) ** 2, 2, 3, padding=1)
        self.reach = reach

    def forward(self, first, second):
        a, b = self.features(first), self.features(second)
        r, (h, w) = self.reach, a.shape[-2:]
        padded = functional.pad(b, (r, r, r, r))
        planes = [(a * padded[..., y:y + h, x:x + w]).mean(1, keepdim=True)
                  for y in range(2 * r + 1) for x in range(2 * r + 1)]
        return self.decoder(functional.leaky_relu(torch.cat(planes, 1), 0.1))


@source(*BOTH)
def optical_flow():
    return Source(Flow(), {"first": image(), "second": image()})


class Tracker(nn.Module):
    """Finds a template in an image: convolves the image's features with the template's."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))

    def forward(self, search, template):
        return functional.conv2d(self.features(search), self.features(template))


@source(*BOTH, CrossCorrelation=1)
def tracker():
    return Source(Tracker(), {"search": image(), "template": image(6)})
