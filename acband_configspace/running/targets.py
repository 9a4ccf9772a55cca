"""What races: a Python function, or a script or binary."""

from __future__ import annotations

import inspect
import math
import os
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from io import BytesIO
from typing import Any

import cloudpickle

from acband_configspace.running.local.messages import (
    BrokenJob,
    CallJob,
    CommandJob,
    Job,
    StartRace,
    TrackSettings,
)
from acband_configspace.running.race import RaceSpec, ScriptReport, TrackLimits

#: What a function may be told besides the configuration, if it has such parameters.
OPTIONAL_ARGUMENTS = ("instance", "seed", "cutoff")


class PythonTarget:
    """A Python callable: function, lambda, closure, partial, bound method or callable object.

    It is called in the racer's process as ``function(configuration, instance=..., seed=...,
    cutoff=...)`` with those of the named arguments that it takes; one that is None is left to the
    function's own default. It is pickled by value where necessary when this object is constructed:
    later changes to what it refers to do not reach the racers, and its changes to global state end
    with the racer.

    Parameters
    ----------
    function : callable
        A float that it returns must be finite: NaN or infinity is a crash. A large value arrives
        shortened: numbers are kept, the rest becomes text.

    Raises
    ------
    TypeError
        If the function cannot be called, or cannot be sent to another process.

    Notes
    -----
    The function runs in the process that reports its result, so one that sets out to forge it
    can; a token only keeps anything else that it starts, or writes by mistake, from counting.

    Examples
    --------
    >>> target = PythonTarget(lambda configuration, seed: configuration["x"] * seed)
    >>> target.arguments
    ('seed',)
    """

    pickled_reader: bytes | None = None

    def __init__(self, function: Callable[..., object]) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable but got {function!r}")
        self.arguments, self._omitted_if_none = _named_parameters(function)
        self.pickled_function: bytes | None = _pickled("the target function", function)

    def job(
        self,
        configuration: Mapping[str, Any],
        *,
        instance: str | None,
        seed: int | None,
        cutoff: float | None,
        shared: object,
    ) -> Job:
        """Return the call for one racer."""
        values = {"instance": instance, "seed": seed, "cutoff": cutoff}
        named = {
            name: values[name]
            for name in self.arguments
            if values[name] is not None or name not in self._omitted_if_none
        }
        data = BytesIO()
        try:
            _SharedPickler(data, shared).dump(((configuration,), named))
        except Exception:  # whatever the configuration's own classes raise
            return BrokenJob(f"could not send the configuration:\n{traceback.format_exc()}")
        return CallJob(data.getvalue())


class CommandTarget:
    """A script or binary. It is executed directly, never through a shell.

    Parameters
    ----------
    command : str, path, or sequence of them
        The program, or the beginning of its argument list. A string is one program name, whatever
        characters it contains.
    to_arguments : callable, optional
        From ``(configuration, instance, seed, cutoff)`` to the arguments that follow ``command``,
        for programs with a command line of their own. By default SMAC's convention:
        ``--instance=... --seed=... --name=value ...``, values as they are.
    success_codes : collection of int, optional
        The exit codes of a run that came to its end; any other is a crash. SAT solvers exit with
        10 or 20 when they have an answer.
    read_result : callable, optional
        From ``(output, exit_code)`` to a :class:`ScriptReport`, or None if the output says
        nothing. It reads the last 64 KB of the standard output of each run that ended in time
        with a code of success. By default the last line such as ``cost=...; status=...`` counts,
        wherever it is. It is called by the process that watches over the racer, before the race
        is judged: what it calls a crash or a timeout stops no other racer. So it is sent there
        like a target function, and has ten seconds. What it raises is a crash of the run. A
        ``runtime`` that it finds counts in place of the time that we measure.
    directory : str, path, optional
        Where the command runs. By default where this process is, or a worker of a cluster.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind.

    Examples
    --------
    >>> CommandTarget(["python", "my solver.py"]).command
    ('python', 'my solver.py')
    """

    pickled_function: bytes | None = None

    def __init__(
        self,
        command: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        to_arguments: Callable[
            [Mapping[str, Any], str | None, int | None, float | None], Sequence[object]
        ]
        | None = None,
        success_codes: Collection[int] = (0,),
        read_result: Callable[[str, int], ScriptReport | None] | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        parts = [command] if isinstance(command, (str, os.PathLike)) else list(command)
        self.command = tuple(os.fspath(part) for part in parts)
        if not self.command or not self.command[0]:
            raise ValueError(f"command must name a program but got {command!r}")
        for name, function in (("to_arguments", to_arguments), ("read_result", read_result)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be callable but got {function!r}")
        self._to_arguments = to_arguments
        self._success_codes = checked_codes(success_codes)
        self._directory = None if directory is None else os.path.abspath(directory)
        self.pickled_reader = None if read_result is None else _pickled("read_result", read_result)

    def job(
        self,
        configuration: Mapping[str, Any],
        *,
        instance: str | None,
        seed: int | None,
        cutoff: float | None,
        shared: object,
    ) -> Job:
        """Return the command for one racer."""
        try:
            if self._to_arguments is None:
                arguments = smac_arguments(configuration, instance, seed)
            else:
                own = self._to_arguments(configuration, instance, seed, cutoff)
                if isinstance(own, (str, bytes)) or not isinstance(own, Sequence):
                    raise TypeError(f"to_arguments must return a list of arguments but got {own!r}")
                arguments = [str(argument) for argument in own]
        except Exception:  # a mistake in the user's function must not end the whole run
            return BrokenJob(f"could not build the command line:\n{traceback.format_exc()}")
        return CommandJob((*self.command, *arguments), self._success_codes, self._directory)


Target = PythonTarget | CommandTarget
"""What a race track can run."""


def checked_codes(codes: Collection[int]) -> frozenset[int]:
    """Return a set of exit codes; refuse anything else."""
    if isinstance(codes, (str, bytes)) or not isinstance(codes, Collection) or not codes:
        raise TypeError(f"success_codes must be a collection of exit codes but got {codes!r}")
    for code in codes:
        if not isinstance(code, int) or isinstance(code, bool) or not 0 <= code <= 255:
            raise ValueError(f"success_codes must lie in 0..255 but got {code!r}")
    return frozenset(codes)


def smac_arguments(
    configuration: Mapping[str, Any], instance: str | None, seed: int | None
) -> list[str]:
    """Return the arguments by SMAC's calling convention, except that no spaces are removed."""
    values: dict[str, object] = {}
    if instance is not None:
        values["instance"] = instance
    if seed is not None:
        values["seed"] = seed
    for name, value in configuration.items():
        if name in values:
            raise ValueError(
                f"a hyperparameter must not be named {name!r}, which SMAC's calling convention "
                "uses itself; rename it, or pass to_arguments"
            )
        values[name] = value
    return [f"--{name}={value}" for name, value in values.items()]


class _SharedPickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no type information
    """Refers to the shared object instead of pickling it."""

    def __init__(self, data: BytesIO, shared: object) -> None:
        super().__init__(data)
        self._shared = shared

    def persistent_id(self, obj: object) -> str | None:
        """Return a name for the shared object only."""
        return "shared" if obj is self._shared and obj is not None else None


def _named_parameters(
    function: Callable[..., object],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the optional arguments a function takes, and those that have a default as well."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # some builtins have no signature
        return (), ()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return OPTIONAL_ARGUMENTS, OPTIONAL_ARGUMENTS
    named = {
        name: parameters[name]
        for name in OPTIONAL_ARGUMENTS
        if name in parameters and parameters[name].kind is not inspect.Parameter.POSITIONAL_ONLY
    }
    return tuple(named), tuple(n for n, p in named.items() if p.default is not p.empty)


def _pickled(what: str, function: Callable[..., object]) -> bytes:
    try:
        return bytes(cloudpickle.dumps(function))
    except Exception as error:  # whatever the objects it refers to raise
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(
            f"{what} {name} must be picklable, to run in processes of its own, but "
            f"something it refers to is not: {error}. Open files, locks, connections and the like "
            "inside the function instead of outside."
        ) from error


def settings_for(target: Target, shared: object, limits: TrackLimits) -> TrackSettings:
    """Return what a supervisor must load for a target."""
    return TrackSettings(
        function=target.pickled_function,
        read_result=target.pickled_reader,
        shared=bytes(cloudpickle.dumps(shared)),
        limits=limits,
    )


def start_message(
    key: int | str, spec: RaceSpec, target: Target, *, cutoff: float | None, shared: object
) -> StartRace:
    """Return a race as it is sent: what each racer has to do, and within what time."""
    jobs = tuple(
        target.job(
            configuration, instance=spec.instance, seed=spec.seed, cutoff=cutoff, shared=shared
        )
        for configuration in spec.configurations
    )
    limits = tuple(
        # Where the limit is not below the cutoff, the cutoff decides.
        math.inf if limit is None or (cutoff is not None and limit >= cutoff) else float(limit)
        for limit in spec.limits or (None,) * len(jobs)
    )
    return StartRace(key, jobs, limits, spec.stop_losers)
