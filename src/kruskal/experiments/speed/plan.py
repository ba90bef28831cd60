"""What `kruskal bench` measures: the sizes of every section, in full and in a hurry."""

from dataclasses import dataclass

ENGINE_SEED = 0
DAMAGE_SEED = 1
KEEPS = {"complete": 1.0, "masked": 0.2}
"""The two kinds of data, by the share of the entries that is observed."""


@dataclass(frozen=True)
class Plan:
    """Sizes of all sections.

    Attributes
    ----------
    side : side of the square picture of the phases, the quality run and the peers
    n_atoms : K, wherever it is not varied;  patch_shape : likewise
    warm_sweeps, rounds, runs : sweeps made before the phases are timed, and sweeps that are timed; how often
    item_counts, atom_counts, patch_shapes : what grows, one after the other
    patch_items : number of items while the patch grows
    growth_sweeps : sweeps of a growth run, of which the last three are taken
    growth_runs : how many runs are made while the number of items grows
    growth_threads : "all" thread counts asked for, or only the "most"
    quality_sweeps : sweeps of the run that is timed until it passes ``target_psnr``
    quality_seeds : of runs of the same length, untimed, for the PSNR of this version beside others
    startup_repeats : processes started to time the start
    peers : whether other programs are run;  peer_sweeps : sweeps before the error that a peer has to reach
    peer_seconds : longest time given to a peer that is trained;  peer_checks : items it is judged by
    noise_std : noise of the pictures that peers denoise;  volume_side : side of the volume among them
    denoise_sweeps : sweeps of kruskal.denoise beside the peers (None: its default)
    n_images, n_pictures, image_sweeps : digits, larger pictures and sweeps over them
    n_trained, train_steps : images and least steps of the training of a deep model
    online_side : side of the square picture that is learned from online
    online_epochs, online_sweeps : lengths of the runs online, and of those by full sweeps beside them
    decomposed_side, n_terms : side of the cube that MGP-CP and a peer decompose, and into how many terms
    """

    name: str
    side: int = 256
    n_atoms: int = 256
    patch_shape: tuple[int, ...] = (8, 8)
    warm_sweeps: int = 20
    rounds: int = 9
    runs: int = 4
    item_counts: tuple[int, ...] = (1_000, 4_000, 16_000, 62_001, 250_000, 1_000_000)
    atom_counts: tuple[int, ...] = (64, 128, 256, 512, 1024)
    atom_items: int = 62_001
    patch_shapes: tuple[tuple[int, ...], ...] = ((8, 8), (12, 12), (7, 7, 7), (8, 8, 8), (10, 10, 10))
    patch_items: int = 16_000
    growth_sweeps: int = 8
    growth_runs: int = 3
    growth_threads: str = "all"
    quality_sweeps: int = 60
    quality_seeds: tuple[int, ...] = (1, 2, 3)
    target_psnr: float = 26.9
    startup_repeats: int = 5
    peers: bool = True
    peer_sweeps: int = 20
    peer_seconds: float = 120.0
    peer_checks: int = 2048
    noise_std: float = 25.0
    volume_side: int = 32
    denoise_sweeps: int | None = None
    n_images: int = 60_000
    n_pictures: int = 200
    image_sweeps: int = 12
    n_trained: int = 5_000
    train_steps: int = 200
    online_side: int = 512
    online_epochs: tuple[int, ...] = (3, 5, 8)
    online_sweeps: tuple[int, ...] = (8, 14, 24, 40, 64)
    decomposed_side: int = 200
    n_terms: int = 30


FULL = Plan("full")
QUICK = Plan(
    "quick",
    warm_sweeps=8,
    rounds=3,
    runs=1,
    item_counts=(1_000, 4_000, 16_000, 62_001),
    atom_counts=(64, 128, 256),
    patch_shapes=((8, 8), (12, 12), (7, 7, 7)),
    patch_items=4_000,
    growth_sweeps=6,
    growth_runs=1,
    growth_threads="most",
    quality_sweeps=20,
    quality_seeds=(1,),
    n_images=2_000,
    n_pictures=20,
    n_trained=1_000,
    online_side=128,
    online_epochs=(2, 3),
    online_sweeps=(4, 8),
    startup_repeats=3,
    peers=False,
    peer_sweeps=8,
    peer_seconds=20.0,
    denoise_sweeps=20,
    volume_side=20,
    decomposed_side=80,
)
