"""Calls the functions of a paper of the published AutoExperiment data on a CPU, with inputs made up here, and prints which
of them return.

    python docs/results/published_functions.py dataset/MLRC PAPER [VOCABULARY]

It shows only that the functions can be reached: the published experiments need data sets, weights and graphics processors
that are not published with the code. Needs torch, torchvision, scipy, pandas and, depending on the paper,
pytorch-wavelets and opencv-python-headless; torchmetrics and captum; or ftfy, regex and CLIP's vocabulary
(`bpe_simple_vocab_16e6.txt.gz`, as in the package clip-anytorch).
"""

import argparse
import contextlib
import json
import os
import pathlib
import runpy
import shutil
import sys
import tempfile

import torch

returned = set()


def reach(name, call):
    """Calls, and notes which functions of the repo return, unless the call ends with an error."""
    seen = set()

    def profile(frame, event, _):
        if event == "return" and frame.f_code.co_filename.startswith(str(root)):
            seen.add((os.path.relpath(frame.f_code.co_filename, root), frame.f_code.co_qualname))

    sys.setprofile(profile)
    try:
        call()
        returned.update(seen)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}".splitlines()[0][:120])
    finally:
        sys.setprofile(None)


def cartoonx():
    import torchvision
    from PIL import Image

    sys.path.insert(0, str(root / "cartoonx"))
    from cartoonX import CartoonX

    picture = sorted((root / "images/imagenet_sample").iterdir())[0]
    image = Image.open(picture).convert("RGB").resize((64, 64))
    values = torchvision.transforms.ToTensor()(image)[None]
    network = torchvision.models.mobilenet_v3_small(weights=None).eval()
    for mask in ("ones", "foreground"):
        explain = CartoonX(network, "cpu", 2, 2, 0.001, 20, "db3", "zero", 2, init_mask=mask)
        reach(mask, lambda: explain(values, torch.tensor(3), str(picture)))


def fairness():
    import numpy
    import pandas

    sys.path[:0] = [str(root / "src"), str(root / "src/utils")]
    reach("toy", lambda: runpy.run_path(str(root / "src/utils/evaluation_functions/fairness_metrics.py"), run_name="__main__"))
    from evaluation_functions import static, stochastic

    random, users, items = numpy.random.default_rng(0), 4, 120
    ranked = [
        {"user": user, "item": item, "score": score}
        for user in range(users)
        for item, score in zip(random.permutation(items)[:100], sorted(random.random(100))[::-1])
    ]
    rows = pandas.DataFrame(ranked)
    labels = (random.random((users, items)) < 0.1).astype(float)
    user_label = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, 1]])
    item_label = torch.tensor((random.random((3, items)) < 0.5).astype(float))
    options = argparse.Namespace(norm="N", gamma=0.8, data="ml-1m", coll="Y", model="Pop", conduct="st", age="N")
    reach("stochastic", lambda: stochastic.eval_function_stochas(rows, user_label, item_label, labels, options, 8))
    reach("static", lambda: static.eval_function_static(rows, user_label, item_label, labels, options))


def guidance():
    import attribution_methods
    import hubconf
    import losses
    import metrics

    values, box = torch.rand(16, 16), [(2, 2, 9, 9)]
    for name in ("Energy", "RRR", "L1", "PPCE"):
        reach(name, lambda: losses.get_localization_loss(name)(values, box))
    for metric in (metrics.BoundingBoxEnergyMultiple(), metrics.BoundingBoxIoUMultiple()):
        reach(type(metric).__name__, lambda: (metric.update(values, box), metric.compute()))

    class Network(torch.nn.Conv2d):
        explanation_mode = contextlib.nullcontext

        def forward(self, images):
            return super().forward(images).mean((2, 3))

    network = Network(3, 4, 3)
    for name in ("BCos", "GradCam", "IxG"):
        images = torch.rand(2, 3, 8, 8, requires_grad=True)
        attributor = lambda together: attribution_methods.get_attributor(network, name, batch_mode=together)
        reach(name, lambda: attributor(True)(images, network(images), classes=torch.tensor([1, 2])))
        reach(name, lambda: attributor(False)(images, network(images), class_idx=1, img_idx=0))
    reach("bcos", lambda: hubconf.resnet18(pretrained=False).forward_and_explain(torch.rand(1, 6, 64, 64)))


def inclusive():
    from PIL import Image

    sys.path.insert(0, str(root / "src/clip"))
    shutil.copy(vocabulary, root / "src/clip/clip")
    import clip
    from clip.model import CLIP

    small = CLIP(768, 224, 1, 64, 32, 77, 49408, 768, 12, 1).float()
    clip.load = lambda *_, **__: (small, None)
    # The repo passes `verbose`, which current versions of torch no longer take.
    schedule = torch.optim.lr_scheduler.MultiStepLR
    torch.optim.lr_scheduler.MultiStepLR = lambda verbose=None, **options: schedule(**options)
    from dataloader.image_dataset import ImgDataset
    from iti_gen.model import ITI_GEN
    from utils import get_category_for_attribute, get_dataset_for_attribute

    folder = pathlib.Path(tempfile.mkdtemp())
    for category in get_category_for_attribute(["Bangs"])[0][0]:
        pictures = folder / get_dataset_for_attribute("Bangs") / "Bangs" / category
        pictures.mkdir(parents=True)
        for number in range(4):
            Image.effect_noise((64, 64), 50 + number).convert("RGB").save(pictures / f"{number}.png")
    options = argparse.Namespace(
        attr_list="Bangs", data_path=str(folder), refer_size_per_category=4, batch_size=4, steps_per_epoch=1,
        prompt="a headshot of a person", device="cpu", token_length=3, lr=0.01, lam=0.8, num_workers=0,
    )

    def train():
        model = ITI_GEN(options)
        model.train(0, [1], tempfile.mkdtemp())
        model.prompt_prepend("a photo of a person")

    reach("training", train)
    # The loader's processes are not watched.
    reach("pictures", lambda: ImgDataset([str(pictures)], [0])[0])


papers = {"2110.03485": cartoonx, "2205.00048": fairness, "2303.11932": guidance, "2309.05569": inclusive}
paper = sys.argv[2]
published = pathlib.Path(sys.argv[1]).resolve() / paper
root = published / "code"
vocabulary = pathlib.Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else None
os.chdir(root)
sys.path.insert(0, str(root))
torch.manual_seed(0)
torch.set_num_threads(1)
with contextlib.redirect_stdout(sys.stderr):
    papers[paper]()
for line in (published / "functions.jsonl").read_text().splitlines():
    function = json.loads(line)
    fitting = sorted(name for file, name in returned if file == function["file"] and name.split(".")[-1] == function["name"])
    print(function["func_id"], function["file"], function["name"], "returned from", ", ".join(fitting) or "nothing")
