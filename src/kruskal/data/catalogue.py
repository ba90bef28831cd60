"""The list of the paper's data sets: what each is, where it can be had, and the SHA-256 of its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Dataset:
    """One data set.

    Attributes
    ----------
    description : str
        What it is.
    home : str
        Where it can be had.
    files : mapping of str to str
        Path below the data folder and SHA-256 of every file.
    key : str or None
        Which array of the file.
    folders : tuple of str
        For a data set that is a folder of pictures: where it may lie below the data folder, in this order.
    """

    description: str
    home: str
    files: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    folders: tuple[str, ...] = ()


BPFA_HOME = "the BPFA package of Mingyuan Zhou (mingyuanzhou.github.io)"
CASTLE = "castle/castle_original.png"
DATASETS: dict[str, Dataset] = {
    "barbara256": Dataset(
        "Barbara, the crop [0:256, 256:512] of the full picture, 256x256 uint8",
        BPFA_HOME,
        {"barbara/barbara256.png": "c476a76493146dbb095807ca8326f98c473ae89d271cb5555044fb8a1e02ca12"},
    ),
    "barbara512": Dataset(
        "Barbara, the full picture, 512x512 uint8",
        f"any collection of standard test images, and {BPFA_HOME}",
        {"barbara/barbara512.png": "764b8a2748cc7ad381cccc047c5e512cb528c197ba86adb83aa339e8932e66c0"},
    ),
    "castle": Dataset(
        "Castle, picture 102061 of the Berkeley Segmentation Dataset, 481x321x3 uint8",
        "the Berkeley Segmentation Dataset (BSDS300 or BSDS500, picture 102061)",
        {CASTLE: "8f0f6217cd8276c5bbee46ebb875e02ba8f47ff70eda210cce7237b8444b7e8d"},
    ),
    "castle_damaged": Dataset(
        "Castle with 20 % of the entries observed, chosen independently per colour, 481x321x3 uint8",
        BPFA_HOME,
        {
            "castle/castle_damaged.png": "19424b3a97c7a65f8f837cf6eb311fa02542f76d8d828862e60bbbb9b91d8fd3",
            CASTLE: "8f0f6217cd8276c5bbee46ebb875e02ba8f47ff70eda210cce7237b8444b7e8d",
        },
    ),
    "amino": Dataset(
        "Fluorescence of five samples of amino acids, 5x201x61 float64",
        "the chemometrics group of the University of Copenhagen (ucphchemometrics.com)",
        {"amino/amino.mat": "21d8696901d44b4bd2863b3723472156bb9a9283b16c035193d0e31436fe6db0"},
        key="X",
    ),
    "brainweb": Dataset(
        "T1 phantom of a normal brain, 1 mm, no noise, 181x217x181, whole numbers 0 to 255",
        "BrainWeb, McGill (brainweb.bic.mni.mcgill.ca), and as .mat with the BM4D demo of Tampere",
        {
            "brainweb/t1_icbm_normal_1mm_pn0_rf0.mat": (
                "8e8f6cd0d17aa208b63100a34c97f7d85d490931e63548cfddde607d55089bd6"
            )
        },
        key="ima",
    ),
    "mnist": Dataset(
        "Handwritten digits, 60,000 for training and 10,000 for testing, 28x28 uint8",
        "the MNIST page of Yann LeCun (yann.lecun.com/exdb/mnist) and its mirrors, the four idx.gz files",
        {
            "mnist/train-images-idx3-ubyte.gz": (
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
            ),
            "mnist/train-labels-idx1-ubyte.gz": (
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
            ),
            "mnist/t10k-images-idx3-ubyte.gz": (
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
            ),
            "mnist/t10k-labels-idx1-ubyte.gz": (
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
            ),
        },
    ),
    "caltech101": Dataset(
        "Caltech 101 without the background class, jpg pictures in one folder per class",
        "Caltech (data.caltech.edu, 'Caltech 101'), the unpacked folder 101_ObjectCategories",
        folders=(
            "caltech101-128/101_ObjectCategories",
            "caltech101/101_ObjectCategories",
            "caltech-101/101_ObjectCategories",
            "101_ObjectCategories",
        ),
    ),
}
