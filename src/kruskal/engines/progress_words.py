"""The words in which a run tells how far it is."""

from collections.abc import Mapping


def describe(values: Mapping[str, float]) -> list[str]:
    """Turn the values of a sweep into words, in a fixed order, leaving out what is not given.

    >>> describe({"noise_std": 24.81, "active_per_item": 5.27, "atoms_used": 187})
    ['noise 24.8', '5.3 atoms per item', '187 atoms used']
    """
    words = []
    if "epoch" in values:
        words.append(f"epoch {values['epoch']:.0f}")
    if "noise_std" in values:
        words.append(f"noise {values['noise_std']:.3g}")
    if "rank" in values:
        words.append(f"rank {values['rank']:.0f}")
    if "active_per_item" in values:
        words.append(f"{values['active_per_item']:.1f} atoms per item")
    if "atoms_used" in values:
        words.append(f"{values['atoms_used']:.0f} atoms used")
    for name, text in (("hinge", "hinge {:.3g}"), ("residual", "residual {:.3g}")):
        if name in values:
            words.append(text.format(values[name]))
    for name, text in (("training_error", "training error"), ("validation_error", "validation error")):
        if name in values:
            words.append(f"{text} {100 * values[name]:.2f} %")
    return words


def duration(seconds: float) -> str:
    """Write a duration the way people say it.

    >>> duration(32.4), duration(250), duration(7500)
    ('32 s', '4 min 10 s', '2 h 5 min')
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
