"""Other programs on the same data in the same run, whichever are installed."""

import importlib
import importlib.util
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from kruskal.data import corrupt
from kruskal.experiments.speed.decomposition import decomposition
from kruskal.experiments.speed.measure import TimedChain
from kruskal.experiments.speed.phases import compile_kernels
from kruskal.experiments.speed.plan import DAMAGE_SEED, ENGINE_SEED, Plan
from kruskal.experiments.speed.problems import Source, brain, make_problem, mirrored, picture
from kruskal.report import psnr
from kruskal.restore import denoise

_BATCH = 256
_WARM_SIDE = 24
_PEAK = 255.0
_HOW_TO_GET = {
    "scikit-learn": "pip install 'kruskal[bench]' brings it",
    "bm3d": "pip install bm3d brings it; its licence is non-commercial",
    "bm4d": "pip install bm4d brings it; its licence is non-commercial",
    "tensorly": "pip install tensorly brings it",
}


def peers(plan: Plan, threads: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Run every peer that is installed; of the others one sentence is kept."""
    source = picture()
    square = Source(mirrored(source.values, (plan.side,) * 2), source.name)
    tasks: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
        "scikit-learn": ("sklearn", lambda: dictionary_learning(square, plan, threads, say)),
        "bm3d": ("bm3d", lambda: denoising("bm3d", square, plan, threads, say)),
        "bm4d": ("bm4d", lambda: denoising("bm4d", brain(plan.volume_side), plan, threads, say)),
        "tensorly": ("tensorly", lambda: decomposition(plan, threads, say)),
    }
    result: dict[str, Any] = {}
    for name, (module, task) in tasks.items():
        if not plan.peers:
            result[name] = {"skipped": f"{name} was not run: a quick run leaves the peers out unless asked."}
        elif importlib.util.find_spec(module) is None:
            result[name] = {"skipped": f"{name} is not installed: {_HOW_TO_GET[name]}."}
        else:
            try:
                result[name] = task()
            except (ImportError, OSError, AttributeError, RuntimeError) as error:
                # the peer's own library is broken
                result[name] = {"skipped": f"{name} is installed but failed ({type(error).__name__})."}
    return result


def dictionary_learning(
    source: Source, plan: Plan, threads: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Time to the reconstruction error of complete patches that KFA has after ``plan.peer_sweeps`` sweeps.

    scikit-learn's MiniBatchDictionaryLearning sees the patches standardised entry by entry, as in its own
    example of denoising, in batches of 256 with its default penalty, and encodes by OMP with as many codes
    per patch as KFA uses on average. Its time is that of the fit so far plus that of encoding all patches,
    which is taken from a sample; KFA's includes its start and, with every sweep, all codes.
    """
    from sklearn.decomposition import MiniBatchDictionaryLearning, sparse_encode

    compile_kernels(source.values, 1.0, plan)
    problem = make_problem(source.values, 1.0, plan.patch_shape, plan.n_atoms)
    say(f"peers: {plan.peer_sweeps} sweeps of KFA on complete patches")
    ours = []
    with TimedChain(problem, threads) as timed:
        seconds = timed.start_seconds
        for sweep in range(1, plan.peer_sweeps + 1):
            timed.advance()
            assert timed.report is not None
            seconds += timed.sweep_seconds[-1]
            squares = timed.report.residual_squares / timed.engine.n_observed
            error = math.sqrt(squares) * problem.scaling.scale
            ours.append({"sweep": sweep, "seconds": seconds, "rmse": error})
        active = timed.report.active_per_item if timed.report else 1.0

    items = problem.items
    patches = items.flat[items.origin[:, None] + items.offset] * np.float32(problem.scaling.scale)
    spread = np.maximum(patches.std(axis=0), 1e-6)
    patches = (patches - patches.mean(axis=0)) / spread
    random = np.random.default_rng(ENGINE_SEED)
    sample = patches[random.permutation(len(patches))[: plan.peer_checks]]
    n_codes = max(1, round(active))
    learner = MiniBatchDictionaryLearning(plan.n_atoms, batch_size=_BATCH, random_state=ENGINE_SEED)
    say(
        f"peers: scikit-learn until its RMSE is {ours[-1]['rmse']:.3f}, for {plan.peer_seconds:.0f} s at most"
    )
    theirs: list[dict[str, float]] = []
    fit, batches = 0.0, 0
    with threadpool_limits(limits=threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while not theirs or (theirs[-1]["rmse"] > ours[-1]["rmse"] and fit < plan.peer_seconds):
            for _ in range(max(1, batches)):  # judged after 1, 2, 4, 8, .. batches
                batch = patches[random.integers(0, len(patches), _BATCH)]
                began = time.perf_counter()
                learner.partial_fit(batch)
                fit += time.perf_counter() - began
                batches += 1
                if fit >= plan.peer_seconds:
                    break
            atoms = learner.components_
            began = time.perf_counter()
            codes = sparse_encode(sample, atoms, algorithm="omp", n_nonzero_coefs=min(n_codes, len(atoms)))
            encode = (time.perf_counter() - began) * len(patches) / len(sample)
            error = float(np.sqrt(np.mean(((codes @ atoms - sample) * spread) ** 2)))
            theirs.append(
                {
                    "batches": batches,
                    "fit_seconds": fit,
                    "encode_seconds": encode,
                    "seconds": fit + encode,
                    "rmse": error,
                }
            )
            say(f"peers: scikit-learn, {batches} batches in {fit:.1f} s, RMSE {error:.3f}")
    reached = theirs[-1]["rmse"] <= ours[-1]["rmse"]
    return {
        "array": source.name,
        "n_items": items.n_items,
        "codes_per_item": n_codes,
        "threads": threads,
        "target_rmse": ours[-1]["rmse"],
        "kruskal_seconds": ours[-1]["seconds"],
        "peer_seconds": theirs[-1]["seconds"] if reached else None,
        "peer_best_rmse": min(point["rmse"] for point in theirs),
        "kruskal_curve": ours,
        "peer_curve": theirs,
    }


def denoising(
    module: str, source: Source, plan: Plan, threads: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Time and PSNR of bm3d or bm4d, which are told the noise, and of `kruskal.denoise`, which is not."""
    program = getattr(importlib.import_module(module), module)
    noisy = corrupt(source.values, noise=plan.noise_std, seed=DAMAGE_SEED).values
    corner = mirrored(noisy, [min(_WARM_SIDE, size) for size in noisy.shape])
    say(f"peers: {module} and kruskal.denoise on {source.name} {'x'.join(map(str, noisy.shape))}")
    program(corner, plan.noise_std)
    denoise(corner, sweeps=8, threads=threads)
    began = time.perf_counter()
    theirs = np.asarray(program(noisy, plan.noise_std)).reshape(noisy.shape)
    seconds = time.perf_counter() - began
    ours = denoise(noisy, sweeps=plan.denoise_sweeps, threads=threads)

    def score(restored: np.ndarray) -> float:
        return psnr(np.clip(restored, 0, _PEAK), source.values, peak=_PEAK)

    return {
        "array": source.name,
        "shape": list(noisy.shape),
        "noise_std": plan.noise_std,
        "noisy_psnr": psnr(noisy, source.values, peak=_PEAK),
        "peer_seconds": seconds,
        "peer_psnr": score(theirs),
        "kruskal_seconds": ours.seconds,
        "kruskal_psnr": score(ours.mean),
        "kruskal_sweeps": ours.settings["sweeps"],
        "kruskal_noise_std": ours.noise_std,
        "threads": threads,
    }
