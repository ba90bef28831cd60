"""The measurements as tables; plain text where there is no terminal."""

from collections.abc import Callable
from typing import Any

from rich.console import Console

from kruskal.experiments.speed.console import milliseconds, number, table, threads_of
from kruskal.experiments.speed.measure import PHASES

_CALM = 0.2


def show(console: Console, section: str, results: dict[str, Any]) -> None:
    """Print the tables of one section."""
    _SECTIONS[section](console, results[section])
    console.print()


def _machine(console: Console, facts: dict[str, Any]) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    memory = f"{facts['memory_bytes'] / 1e9:.0f} GB"
    console.print(f"{facts['cpu']}, {facts['cores']} cores, {memory}, {facts['system']}; {facts['blas']}")
    console.print(f"python {facts['python']}, {versions}")
    if facts["load_before"] is not None:
        console.print(f"load before the start {facts['load_before']:.1f}")


def _startup(console: Console, measured: dict[str, Any]) -> None:
    first = measured["first_sweep_seconds"]
    rows = [
        ("import kruskal", measured["import_seconds"]),
        ("everything that inpaint needs", measured["load_seconds"]),
        ("first sweep done, complete (32x32)", first["complete"]),
        ("first sweep done, 20 % observed (32x32)", first["masked"]),
    ]
    title = f"Start-up, warm caches, best of {measured['repeats']} processes"
    table(console, title, ("from the start of Python to", "seconds"), rows)


def _phases(console: Console, measured: dict[str, Any]) -> None:
    for kind in ("complete", "masked"):
        one = measured[kind]
        title = (
            f"Phases of a sweep, {kind} ({100 * one['observed_share']:.0f} % observed): "
            f"{measured['picture']}, "
            f"N={one['n_items']:,} P={one['n_entries']} K={one['n_atoms']}, "
            f"best of {measured['rounds']} after {measured['warm_sweeps']} sweeps, milliseconds"
        )
        rows = []
        for threads, each in one["threads"].items():
            rows.append(
                (
                    f"{threads} ({each['product_way']})",
                    f"{each['cores_got']:.2f}",
                    f"{each['cores_of_others']:.2f}",
                    *(milliseconds(each["phases"][phase]) for phase in PHASES),
                    milliseconds(each["sweep_seconds"]),
                    milliseconds(each["product_seconds"]),
                    each["codes_to_product"],
                    each["atoms_to_codes"],
                    f"{each['pairs_per_second'] / 1e6:,.0f}",
                )
            )
        columns = ("threads (product by)", "cores got", "others", *PHASES, "sweep", "product")
        ratios = ("codes / product", "atoms / codes", "million pairs / s")
        table(console, title, (*columns, *ratios), rows)
        for threads, ratio in one["speed_up"].items():
            console.print(
                f"{threads} threads against 1: a sweep {ratio['sweep']:.2f} times as fast (codes "
                f"{ratio['codes']:.2f}, atoms {ratio['atoms']:.2f}), the whole run {ratio['run']:.2f}; "
                f"the matrix product alone {ratio['product']:.2f}"
            )
        taken = max(each["cores_of_others"] for each in one["threads"].values())
        if taken > _CALM:
            console.print(
                f"other programs took {taken:.1f} cores: with several threads these times say little"
            )
        memory = one["memory"]
        console.print(
            f"{one['active_per_item']:.1f} active codes per item; "
            f"{memory['bytes_per_item']:.0f} bytes per item, "
            f"{memory['code_bytes_per_item']:.0f} of them codes; the rest is "
            f"{memory['beyond_codes_to_raw']:.2f} times the raw data "
            f"({memory['raw_bytes_per_item']:.0f} bytes); "
            f"results {'' if one['identical_for_all_threads'] else 'NOT '}identical for all threads"
        )
        if kind == "complete":
            console.print()


def _quality(console: Console, measured: dict[str, Any]) -> None:
    if "failed" in measured:
        console.print(f"Time to quality: {measured['failed']}")
        return
    curve = measured["curve"]
    steps = sorted({1, 2, 5, 10, 15, 20, 30, 40, 50, len(curve)})
    rows = [
        (str(point["sweep"]), point["seconds"], f"{point['draw']:.2f}", f"{point['mean']:.2f}")
        for point in curve
        if point["sweep"] in steps
    ]
    title = f"Time to quality: {measured['picture']}, 20 % observed, {threads_of(measured['threads'])}"
    table(console, title, ("sweep", "seconds", "PSNR of the draw", "of the mean of the later half"), rows)
    reached = measured["reached"]
    arrival = (
        f"after {reached['seconds']:.2f} s, sweep {reached['sweep']} (by the {reached['by']})"
        if reached
        else f"not within {measured['run_sweeps']} sweeps"
    )
    console.print(
        f"{measured['target_psnr']} dB passed {arrival}; {measured['run_sweeps']} sweeps in "
        f"{measured['run_seconds']:.1f} s, peak memory {measured['peak_bytes'] / 1e6:,.0f} MB"
    )
    seeds = measured["psnr_of_seeds"]
    console.print(
        f"inpaint, rank 2, {measured['run_sweeps']} sweeps, half of them burn-in, no annealing: "
        + ", ".join(f"{value:.3f} dB (seed {seed})" for seed, value in seeds.items())
        + f", mean {sum(seeds.values()) / len(seeds):.3f}"
    )


def _growth(console: Console, measured: dict[str, Any]) -> None:
    titles = {"items": "the number of items N", "atoms": "the number of atoms K", "entries": "the patch P"}
    for axis, what in titles.items():
        rows = [
            (
                f"{run['kind']}, {run['threads']}",
                f"{run['cores_got']:.2f}", f"{run['cores_of_others']:.2f}",
                run["n_items"], run["n_atoms"],
                f"{run['n_entries']} ({'x'.join(map(str, run['patch_shape']))})",
                milliseconds(run["sweep_seconds"]), milliseconds(run["codes_seconds"]),
                milliseconds(run["atoms_seconds"]), milliseconds(run["product_seconds"]),
                run["codes_seconds"] / run["product_seconds"],
                f"{run['active_per_item']:.1f}", run["bytes_per_item"], f"{run['peak_bytes'] / 1e6:,.0f}",
            )
            for run in measured[axis]
        ]  # fmt: skip
        sizes = ("data, threads", "cores got", "others", "N", "K", "P")
        times = ("sweep ms", "codes ms", "atoms ms", "product ms", "codes / product")
        memory = ("active", "bytes / item", "peak MB")
        table(console, f"Growth with {what}", (*sizes, *times, *memory), rows)
    slopes = [
        (
            f"{one['axis']}, {one['kind']}, {threads_of(one['threads'])}",
            f"{min(one['sizes']):,} to {max(one['sizes']):,}",
            *("-" if one[name] is None else f"{one[name]:.3f}" for name in ("sweep", "codes")),
        )
        for one in measured["exponents"]
        if one["sweep"] is not None
    ]
    table(console, "Growth exponents", ("of", "from", "sweep", "codes"), slopes)
    for sentence in measured["failed"]:
        console.print(f"not measured: {sentence}")


def _images(console: Console, measured: dict[str, Any]) -> None:
    if "failed" in measured:
        console.print(f"images were not measured: {measured['failed']}")
        return
    step, threads = measured["step"], threads_of(measured["threads"])
    for sweep, array in ((measured["sweep"], "array"), (measured["picture_sweep"], "picture_array")):
        console.print(
            f"{sweep['n_images']:,} images of {measured[array]}, {threads}: a sweep of CKFA "
            f"{sweep['seconds']:.2f} s ({sweep['active_per_image']:.0f} active places per image), a dense "
            f"correlation {sweep['dense_seconds']:.2f} s; peak {sweep['peak_bytes'] / 1e9:.2f} GB"
        )
    console.print(
        f"a step of DGDN with {step['batch']} images {1e3 * step['seconds']:.1f} ms, dense analysis and "
        f"synthesis {1e3 * step['dense_seconds']:.1f} ms"
    )


def _online(console: Console, measured: dict[str, Any]) -> None:
    for run in measured["runs"]:
        rows = [
            (f"{one['number']} epochs", one["seconds"], f"{one['psnr']:.2f}",
             f"{'' if one['reached'] else 'more than '}{one['sweep_seconds']:.1f}", one["to_sweeps"])
            for one in run["batches"]
        ]  # fmt: skip
        rows += [
            (f"{one['number']} sweeps", one["seconds"], f"{one['psnr']:.2f}", "", "") for one in run["sweeps"]
        ]
        side, threads = measured["side"], threads_of(measured["threads"])
        title = f"Online: {measured['picture']}, {side}x{side}, {run['keep']:.0%} observed, {threads}"
        table(console, title, ("", "seconds", "PSNR", "seconds of full sweeps to that", "ratio"), rows)


def _peers(console: Console, measured: dict[str, Any]) -> None:
    rows, sentences = [], []
    for name, one in measured.items():
        if "skipped" in one:
            sentences.append(one["skipped"])
        elif "target_rmse" in one:
            sentences.append(
                f"RMSE {one['target_rmse']:.3f} on {one['n_items']:,} complete patches of {one['array']}, "
                f"{one['codes_per_item']} codes per patch: kruskal {one['kruskal_seconds']:.1f} s, {name} "
                + (
                    f"{one['peer_seconds']:.1f} s"
                    if one["peer_seconds"] is not None
                    else f"not reached ({one['peer_best_rmse']:.3f} after "
                    f"{one['peer_curve'][-1]['seconds']:.0f} s)"
                )
                + f" (of which {one['peer_curve'][-1]['encode_seconds']:.1f} s to encode all patches)"
            )
        elif "sweep_to_iteration" in one:
            sentences.append(
                f"{'x'.join(map(str, one['shape']))}, {one['observed_share']:.0%} observed, {one['n_terms']} "
                f"terms: a sweep of MGP-CP {one['sweep_seconds']:.2f} s, an iteration of {name}'s masked "
                f"parafac {one['iteration_seconds']:.2f} s"
            )
        else:
            what = f"{one['array']} {'x'.join(map(str, one['shape']))}"
            rows.append((f"{name} (told the noise)", what, one["peer_seconds"], f"{one['peer_psnr']:.2f}"))
            ours = f"kruskal.denoise ({one['kruskal_sweeps']} sweeps, blind)"
            rows.append((ours, what, one["kruskal_seconds"], f"{one['kruskal_psnr']:.2f}"))
    if rows:
        table(console, "Peers: denoising, sigma 25", ("program", "array", "seconds", "PSNR"), rows)
    for sentence in sentences:
        console.print(sentence)


def _goals(console: Console, aims: list[dict[str, Any]]) -> None:
    rows = []
    for aim in aims:
        bounds = [f"at least {number(aim['low'])}"] if aim["low"] is not None else []
        bounds += [f"at most {number(aim['high'])}"] if aim["high"] is not None else []
        measured = "not reached" if aim["measured"] is None else number(aim["measured"])
        rows.append((aim["name"], measured, ", ".join(bounds), "yes" if aim["met"] else "NO"))
    table(console, "Goals", ("what", "measured", "wanted", "met"), rows)


_SECTIONS: dict[str, Callable[[Console, Any], None]] = {
    "machine": _machine,
    "startup": _startup,
    "phases": _phases,
    "quality": _quality,
    "growth": _growth,
    "images": _images,
    "online": _online,
    "peers": _peers,
    "goals": _goals,
}
