"""usage: resnet18.py [TRACE.json]: what a ResNet-18 of torchvision does with a batch of (5, 3, 224,
224), operator by operator, with nothing changed in it. Prints the table and writes a trace for
https://ui.perfetto.dev. docs/pictures/resnet18.png shows it (make picture-resnet18). Needs torch
and torchvision from PyPI."""

import sys

import prof
import prof.torch  # before torch

# isort: split
import torch
import torchvision


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "resnet18.json"
    model = torchvision.models.resnet18(weights=None).eval()
    batch = torch.randn(5, 3, 224, 224)
    with torch.no_grad():
        model(batch)  # the first one loads and chooses
        with prof.profile() as p, prof.torch.observe(with_modules=True):
            model(batch)
    print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    p.export_chrome_trace(path)


if __name__ == "__main__":
    main()
