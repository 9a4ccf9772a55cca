"""Numbers, durations and gains as people read them."""

from __future__ import annotations


def number(value: float) -> str:
    """Return a number with four significant digits.

    >>> number(0.46154), number(12345.6), number(3.0), number(1e-9)
    ('0.4615', '12,346', '3', '1e-09')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def bounded(value: float, *, at_least: bool) -> str:
    """Return a number that may be a lower bound only.

    >>> bounded(2.5, at_least=True), bounded(2.5, at_least=False)
    ('at least 2.5', '2.5')
    """
    return f"at least {number(value)}" if at_least else number(value)


def seconds(value: float) -> str:
    """Return a duration in a unit that suits it.

    >>> seconds(0.25), seconds(90), seconds(1800), seconds(86400)
    ('0.25 s', '90 s', '30 min', '24 h')
    """
    if value < 120:
        return f"{value:.3g} s"
    if value < 7200:
        return f"{value / 60:.3g} min"
    return f"{value / 3600:.3g} h" if value < 172800 else f"{value / 86400:.3g} days"


def counted(n: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "race"), counted(2000, "race")
    ('1 race', '2,000 races')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def gain(
    default: float,
    incumbent: float,
    *,
    racing: bool,
    is_ratio: bool | None = None,
    interval: tuple[float, float] | None = None,
) -> str:
    """Return how much better the incumbent's mean cost is than the default's.

    Parameters
    ----------
    default, incumbent : float
        The mean costs.
    racing : bool
        Whether they are run times.
    is_ratio : bool | None
        Whether costs can be divided; None: if both means are positive.
    interval : (float, float) | None
        The 95 % interval of their ratio, or else of their difference.

    >>> gain(3.2, 2.0, racing=True)
    '1.60 times as fast as the default'
    >>> gain(2.0, 3.0, racing=True, interval=(0.5, 0.8))
    '1.50 times as slow as the default (95 % interval 1.25 to 2.00)'
    >>> gain(4.0, 3.0, racing=False), gain(1.0, -0.5, racing=False)
    ('25 % less than the default', '1.5 less than the default')
    """
    divided = min(default, incumbent) > 0 if is_ratio is None else is_ratio
    worse = incumbent > default

    def amount(figure: float) -> float:
        return _amount(figure, is_ratio=divided, racing=racing, worse=worse)

    def in_words(amount: float) -> str:
        return _in_words(amount, is_ratio=divided, racing=racing)

    text = in_words(amount(default / incumbent if divided else default - incumbent))
    if divided and racing:
        text = f"{text} times as {'slow' if worse else 'fast'} as the default"
    else:
        text = f"{text} {'more' if worse else 'less'} than the default"
    if interval is not None:
        low, high = sorted(map(amount, interval))
        text += f" (95 % interval {in_words(low)} to {in_words(high)})"
    return text


def _amount(figure: float, *, is_ratio: bool, racing: bool, worse: bool) -> float:
    """Return a figure as people are told it: a speed-up, a share saved, or a difference."""
    if is_ratio and racing:
        return 1 / figure if worse else figure
    saved = 1 - 1 / figure if is_ratio else figure
    return -saved if worse else saved


def _in_words(amount: float, *, is_ratio: bool, racing: bool) -> str:
    if not is_ratio:
        return number(amount)
    if racing:
        return f"{amount:.2f}" if amount < 10 else f"{amount:,.0f}"
    return f"{100 * amount:.0f} %" if abs(amount) >= 0.1 else f"{100 * amount:.1f} %"
