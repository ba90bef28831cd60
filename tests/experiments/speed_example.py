"""A plan so small that a whole bench takes seconds."""

from dataclasses import replace

from kruskal.experiments.speed import plan, worker

TINY = replace(
    plan.QUICK,
    side=40,
    n_atoms=12,
    warm_sweeps=2,
    rounds=2,
    item_counts=(100, 400),
    atom_counts=(6, 12),
    atom_items=400,
    patch_shapes=((4, 4), (3, 3, 3)),
    patch_items=60,
    growth_sweeps=3,
    quality_sweeps=4,
    quality_seeds=(1, 2, 3),
    target_psnr=12.0,
    startup_repeats=1,
    peer_sweeps=3,
    peer_seconds=0.5,
    peer_checks=100,
    denoise_sweeps=4,
    volume_side=12,
    n_images=30,
    n_pictures=3,
    image_sweeps=4,
    n_trained=40,
    online_side=48,
    online_epochs=(2,),
    online_sweeps=(2, 3),
    train_steps=60,
    decomposed_side=12,
    n_terms=3,
)


def call_here(task, request):
    """A measurement in this process instead of one of its own."""
    return worker.TASKS[task](request)


def silent(text):
    """Hear nothing."""
