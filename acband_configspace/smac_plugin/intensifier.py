"""AC-Band as a SMAC intensifier: asks the engine for races and tells it their outcomes."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from ConfigSpace import Configuration
from smac.callback.callback import Callback
from smac.runhistory.dataclasses import InstanceSeedKey, TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from smac.runhistory.runhistory import RunHistory
from smac.scenario import Scenario

from acband_configspace.core.ends import End
from acband_configspace.core.engine import Engine, Limits, ReplayError
from acband_configspace.core.instances import InstanceKey, Instances
from acband_configspace.core.passes import SchedulePlan
from acband_configspace.core.race import Outcome, Race, RaceId
from acband_configspace.core.schedule import Schedule
from acband_configspace.core.search_plan import SearchSchedule, search_schedule
from acband_configspace.core.settings import Settings, settings_from
from acband_configspace.core.statistics import Statistic
from acband_configspace.errors import RunDiffersError
from acband_configspace.runlog.estimates import estimated
from acband_configspace.runlog.records import RaceRecord, Recorded
from acband_configspace.running.signals import interrupts_held
from acband_configspace.smac_plugin.configurations import Configurations
from acband_configspace.smac_plugin.description import describe_object
from acband_configspace.smac_plugin.incumbent import LeaderIntensifier
from acband_configspace.smac_plugin.pending import (
    CrashWatch,
    PendingRace,
    PendingRaces,
    RaceCallback,
)
from acband_configspace.smac_plugin.proposals import FromSelector, Learned, Proposals
from acband_configspace.smac_plugin.scenario import (
    is_timed,
    refuse_unsupported,
    trial_limit,
    validation_keys,
)
from acband_configspace.smac_plugin.told import Told
from acband_configspace.smac_plugin.trial_values import ToldTrial, end_of, is_result, outcome_of

if TYPE_CHECKING:
    from acband_configspace.smac_plugin.optimizer import ACBandOptimizer

logger = logging.getLogger(__name__)


class _NotGiven:
    """Stands for "no option of that name was given", where None is a value."""

    def __repr__(self) -> str:
        return "…"  # in help texts, which say what holds then


NOT_GIVEN: Any = _NotGiven()
#: The options of the search, as the facade takes them too.
OPTIONS = ("preset", *(option.name for option in dataclasses.fields(Settings) if option.init))


@dataclass(frozen=True)
class _Begun:
    """A run that has begun."""

    engine: Engine
    configurations: Configurations
    pending: PendingRaces
    crashes: CrashWatch
    runhistory: RunHistory | None
    """What it has begun with."""


class ACBandIntensifier(LeaderIntensifier):
    """AC-Band (Brandt et al., AAAI 2023) as an intensifier for SMAC 2.

    It races k configurations on an instance, and lets the best meet the champion on more and more
    instances until one of them has beaten it. Configurations are drawn uniformly, without a model,
    unless ``proposals`` says otherwise.

    Parameters
    ----------
    scenario : Scenario
        ``n_trials`` is the budget. With ``walltime_limit`` or ``cputime_limit``, and ``n_trials``
        left at SMAC's default, the time alone decides.
    preset : str | Settings
        What the options below start from: "default", or "paper", the schedule of the paper.
    k : int | None
        How many configurations race on an instance: by default 4 with ``racing``, otherwise 8, and
        2 in the paper's schedule.
    first_pass : int | None
        How many trials the first pass may take. By default 11 with ``racing``, and each pass is a
        tenth longer than the one before; otherwise 10 where configurations are proposed, each pass
        3 % longer; otherwise 25 under a time limit, each pass twice as long; otherwise ``n_trials``
        are divided up between two passes (one below 150).
    proposals : "uniform" | "learned" | "selector" | Proposals
        Where new configurations come from. "uniform": all at random. "learned": a quarter at random
        (half with ``racing``), the others chosen by a model, most of them near the best so far.
        "selector", in a stock facade: half at random, the others from SMAC's own selector, with its
        model and acquisition function (such a run cannot be resumed). Or an object of your own
        proposes them: see :class:`~acband_configspace.smac_plugin.proposals.Proposals`.
    first : "default" | "random"
        θ_0: the space's default configuration, or a random one as in the paper.
    memory : bool | None
        Whether results are kept from round to round, and configurations meet on common instances.
        By default yes, unless one of the following options is given, which belong to the paper's
        schedule.
    alpha, delta : float
        With probability 1 - δ one of the best share α of all configurations is drawn. With
        ``alpha=None``, the default, it is as small as ``n_trials`` allows; δ is 0.05.
    n_candidates : int | None
        How many configurations to draw, instead of what α and δ ask for.
    n_epochs : int | None
        At most so many epochs; fewer mean more races for each. The paper's number by default.
    budget : int | None
        The number of races, instead of the most that fit into ``n_trials``.
    statistic : str | Statistic
        What ranks a group: "wins" (the paper's, and the default), "mean", "quantile", or an object
        of one's own.
    early_stopping : float | None
        When a group is decided. 0, the default: once its remaining races cannot change who
        survives, which saves trials and changes nothing else. A level above 0: also once a test at
        that level tells its survivors from the rest. None, as in the paper: after all its races.
    playoff : int
        On how many fresh instances, at most (100 by default), the winners of the epochs and θ_0
        meet in the end, judged by their mean cost; at most a quarter of the budget is set aside for
        it, and with a budget too small for 25 it does not take place. 0, as in the paper: the
        winner of the last epoch is returned.
    spend : "nothing" | "configurations"
        What becomes of trials that early stopping saved: they remain (the default), or buy further
        epochs. With several workers fewer are saved, so the last of these epochs may then find no
        room.
    racing : bool
        Whether the runner stops losers. :class:`ACBandFacade` sees to it.
    additional_configs : list of Configuration | None
        What races from the start besides θ_0. None: what the user added to the initial design.
    seed : int | None
        The scenario's by default.

    Limits: one objective, no ``min_budget``/``max_budget``, no adaptive capping.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        preset: str | Settings = "default",
        k: int | None = NOT_GIVEN,
        first_pass: int | None = NOT_GIVEN,
        proposals: str | Proposals = NOT_GIVEN,
        first: Literal["default", "random"] = NOT_GIVEN,
        memory: bool | None = NOT_GIVEN,
        alpha: float | None = NOT_GIVEN,
        delta: float = NOT_GIVEN,
        n_candidates: int | None = NOT_GIVEN,
        n_epochs: int | None = NOT_GIVEN,
        budget: int | None = NOT_GIVEN,
        statistic: str | Statistic = NOT_GIVEN,
        early_stopping: float | None = NOT_GIVEN,
        playoff: int = NOT_GIVEN,
        spend: Literal["nothing", "configurations"] = NOT_GIVEN,
        racing: bool = False,
        additional_configs: Sequence[Configuration] | None = None,
        seed: int | None = None,
    ) -> None:
        arguments = locals()
        options = {name: arguments[name] for name in OPTIONS if arguments[name] is not NOT_GIVEN}
        refuse_unsupported(scenario)
        self.racing = racing
        """Whether the runner stops losers."""
        self.allow_crashes = False
        """Whether to go on if every trial of the first round crashes."""
        self._additional_configs = additional_configs
        self._from_selector: FromSelector | None = None
        super().__init__(scenario, settings_from(**options), seed=seed)

    def with_run(
        self, scenario: Scenario, *, racing: bool, additional_configs: Sequence[Configuration]
    ) -> ACBandIntensifier:
        """Return itself, or a copy if the run differs in its instances, racing or who races.

        What is added here races beside what it was made with.
        """
        same = racing == self.racing and scenario.instances == self._scenario.instances
        if same and not additional_configs:
            return self
        return type(self)(
            scenario,
            preset=self.settings,
            racing=racing,
            additional_configs=[*self.additional_configs, *additional_configs],
            seed=self._seed,
        )

    @property
    def additional_configs(self) -> list[Configuration]:
        """What was given to race from the start, besides θ_0."""
        return list(self._additional_configs or ())

    def reset(self) -> None:
        """Forget everything that happened."""
        super().reset()
        self._begun: _Begun | None = None
        self._recorder: ACBandOptimizer | None = None
        self._n_planned = 0
        self._is_unwritten = False
        self._said_finished = False
        self._taken: RaceRecord | None = None
        self._moment = (0, 0.0)
        self.told = Told()
        """Results that were known before the first race: their configurations take part."""
        self.started = False
        """Whether a trial was asked for: what is told from now on takes no part."""
        self._completed: deque[PendingRace] = deque()
        self._torn_by: BaseException | None = None
        self._announced: set[int] = set()
        self._logged: set[str] = set()

    # --- what SMAC wants to know -------------------------------------------------------------

    @property
    def meta(self) -> dict[str, Any]:  # noqa: D102
        # Not asdict, which would copy objects of the user's own.
        names = [option.name for option in dataclasses.fields(Settings) if option.init]
        options = {name: getattr(self.settings, name) for name in names}
        options["statistic"] = _name_of(self.settings.judge_by)
        if not isinstance(self.settings.proposals, str):
            options["proposals"] = describe_object(self.settings.proposals)
        options["k"] = self.settings.racers(racing=self.racing)
        return {**super().meta, **options, "racing": self.racing}

    @property
    def uses_seeds(self) -> bool:  # noqa: D102
        return True

    @property
    def uses_budgets(self) -> bool:  # noqa: D102
        return False

    @property
    def uses_instances(self) -> bool:  # noqa: D102
        return self._scenario.instances is not None

    @property
    def uses_cutoffs(self) -> bool:  # noqa: D102
        return False

    def get_callback(self) -> Callback:
        """Return the callback that makes SMAC wait for outcomes, and passes them on."""
        return RaceCallback(self)

    def get_instance_seed_keys_of_interest(
        self, *, validate: bool = False, seed: int | None = None
    ) -> list[InstanceSeedKey]:
        """Return what to validate on: all instances, or fresh seeds where there are none."""
        return validation_keys(self._scenario, self._scenario.instances, seed)

    def get_state(self) -> dict[str, Any]:  # noqa: D102
        engine, ids = self.engine, self.runhistory.config_ids
        return {
            "n_races": engine.n_races,
            "plans": [str(plan).splitlines() for plan in engine.plans],
            "epoch_winners": [
                [ids[self.configurations[number]] for number in winners]
                for winners in engine.epoch_winners
            ],
            "finished": engine.finished,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Refuse what SMAC cannot continue; all else is worked out from the run history."""
        if self.settings.proposals != "selector" or not state.get("n_races"):
            return
        saved = self._scenario.output_directory / "optimization.json"
        if not json.loads(saved.read_text(encoding="utf-8"))["finished"]:
            raise RuntimeError(
                "a run with proposals='selector' cannot be continued: what SMAC's selector chooses "
                "depends on all that it was asked before. Use overwrite=True to start anew, or "
                f"another name; what was found is in {self._scenario.output_directory}"
            )

    def _costs_now(self, leaders: Sequence[int]) -> list[float]:
        if self._begun is None:
            return []
        costs = estimated(self._begun.engine, leaders)
        return [math.nan if cost.best is None else cost.best for cost in costs]

    def __iter__(self) -> Iterator[TrialInfo]:
        """Yield the trials of races that may run now; end where it has to wait, or is finished.

        The callback makes sure that SMAC asks only when there is a trial.
        """
        while self.fill():
            self.started = True
            yield self.pending.pop()

    # --- the run -----------------------------------------------------------------------------

    @property
    def _run(self) -> _Begun:
        if self._begun is None:  # at first, and once more after results were told
            self.begin(recorder=self._recorder, write=False)
        elif self._begun.runhistory is not self._runhistory:
            # A plan that was looked at before there was a facade knew neither what the user adds
            # nor what a run history holds.
            self.begin()
        assert self._begun is not None
        return self._begun

    def settle(self) -> None:
        """Begin the run unless it has begun, with all that was told: numbers are as they stay."""
        _ = self._run

    def number_of(self, config: Configuration) -> int | None:
        """Return the number of a configuration; None if it has none, or none yet."""
        return None if self._begun is None else self._begun.configurations.number_of(config)

    @property
    def engine(self) -> Engine:
        """The engine, which decides; it is made when it is first needed."""
        return self._run.engine

    @property
    def configurations(self) -> Configurations:
        """The configurations by their numbers."""
        return self._run.configurations

    @property
    def pending(self) -> PendingRaces:
        """The races that are being run."""
        return self._run.pending

    @property
    def schedule(self) -> Schedule | SearchSchedule:
        """The plan: what will be done, before anything runs."""
        if not self.settings.memory:
            plan = self.engine.plans[-1]
            assert isinstance(plan, SchedulePlan)
            return plan.schedule
        return search_schedule(
            n_trials=self.n_trials,
            k=self.settings.racers(racing=self.racing),
            first_pass=self.settings.trials_of_first_pass(
                racing=self.racing, timed=is_timed(self._scenario)
            ),
            growth=self.settings.growth(racing=self.racing),
            racing=self.racing,
            n_given=self.n_given,
            one_instance=self._one_cost,
        )

    @property
    def finished(self) -> str | None:
        """Why there is nothing left to race, None while there is."""
        return None if self._begun is None else self._begun.engine.finished

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to race, and all results that were asked for are judged.

        The last trials may still run when it is known that no further race will begin.
        """
        return self.finished is not None and not (self._completed or self.pending.awaits_any)

    @property
    def n_races(self) -> int:
        """Races that are over."""
        return 0 if self._begun is None else self._begun.engine.n_races

    @property
    def n_given(self) -> int:
        """How many configurations race from the start."""
        return self.configurations.n_given

    @property
    def n_trials(self) -> float:
        """How many trials the races may have: what was told beforehand counts as run."""
        # What is known takes none of them, and is not planned for: races may not meet it.
        return max(2, trial_limit(self._scenario) - self.told.n_counted)

    @property
    def trial_limit(self) -> float:
        """How many trials the run history may come to hold: a warm start takes no room."""
        return trial_limit(self._scenario) + self.n_warm

    @property
    def n_warm(self) -> int:
        """How many results come from a warm start."""
        return self.told.n_warm

    @property
    def n_finished(self) -> int:
        """How many trials have finished, without those of a warm start."""
        return self.runhistory.finished - self.n_warm

    @property
    def n_in_space(self) -> int | None:
        """How many configurations the space has at most, None if it is not finite."""
        sizes = [parameter.size for parameter in self._scenario.configspace.values()]
        if not all(map(math.isfinite, sizes)):
            return None
        n_all = math.prod(map(int, sizes))
        return n_all if n_all < 2**63 else None  # a journal holds no more, and nobody draws them

    def begin(
        self,
        recorded: Recorded | None = None,
        recorder: ACBandOptimizer | None = None,
        *,
        write: bool = True,
    ) -> None:
        """Start the engine, with what an earlier process recorded, if there is anything.

        A recorder keeps a record of the run; what is recorded comes before what is decided on it.
        It is told that a new run has begun at once, or, without ``write``, before its first race:
        who only looks at a run leaves its journal alone.
        """
        self._recorder = recorder
        self._completed.clear()
        self.started = recorded is not None and len(recorded.races) > 0
        configurations = Configurations(
            self._scenario.configspace, self._given(), seed=self._seed, proposals=self._proposals()
        )
        if configurations.draw(2) < 2:
            raise ValueError(
                "configspace must have at least two configurations to choose from but has only "
                f"{dict(configurations[0])}"
            )
        engine = Engine(
            self.settings,
            racing=self.racing,
            instances=Instances(
                self._scenario.instances,
                deterministic=self._scenario.deterministic,
                seed=self._seed,
                known=self.told.keys_of(configurations),
            ),
            draw=configurations.draw,
            limits=self._limits(recorded),
            n_given=configurations.n_given,
            n_in_space=self.n_in_space,
            seed=self._seed,
            plans=[] if recorded is None else recorded.plans,
            recorded=self._take_earlier,
            replayed=self._follow_recorded,
        )
        self._n_planned = 0 if recorded is None else len(recorded.plans)
        history = RunHistory() if self._runhistory is None else self._runhistory
        only_seed = engine.key(0).seed if self._scenario.deterministic else None
        told = self.told.values(only_seed=only_seed)
        pending = PendingRaces(configurations, history, engine.needs, told, racing=self.racing)
        crashes = CrashWatch(
            works=self.started,  # a run of crashes alone is not continued
            n_enough=self.settings.racers(racing=self.racing),
        )
        self._begun = _Begun(engine, configurations, pending, crashes, self._runhistory)
        self._is_unwritten = recorder is not None and recorded is None
        if recorder is not None and recorded is None:
            recorder.renumber()
        if write:
            self._write_beginning()  # only now: what cannot be planned leaves no files behind

    def _write_beginning(self) -> None:
        if self._is_unwritten and self._recorder is not None:
            self._recorder.begun()
            self._is_unwritten = False
        self._record_plans()

    def _limits(self, recorded: Recorded | None) -> Limits:
        n_changes = 0
        if recorded is not None:
            before = math.inf if recorded.n_trials is None else recorded.n_trials
            n_changes = recorded.n_changes + (before != self.n_trials)
        return Limits(self.n_trials, is_timed(self._scenario), n_changes)

    def take_in(self) -> None:
        """Take in what an earlier process recorded, before anything else is asked for.

        Configurations are drawn on the way, since later ones may depend on earlier races; the run
        history is not looked at, but filled by the recorder.
        """
        try:
            asked = list(iter(self.engine.ask, None))
        except ReplayError as error:
            directory = str(self._scenario.output_directory)
            raise RunDiffersError(directory, [str(error)]) from None
        self.engine.give_back(asked)  # what follows from the first ones goes before the others
        self._record_plans()

    def fill(self) -> bool:
        """Open the next race unless trials are waiting to be handed out; say whether any are."""
        engine, pending = self.engine, self.pending
        self._refuse_torn()
        self._write_beginning()
        self._judge_completed()
        while not pending:
            race = engine.ask()
            try:
                self._record_plans()
                self._follow_leader(self.n_finished, self.used_walltime)
                if not self.allow_crashes:
                    self._run.crashes.refuse(
                        race, finished=engine.finished is not None, any_told=bool(self.told)
                    )
                if race is None or not self._open(race):
                    break
            except BaseException:  # a full disk, Ctrl-C, a callback's error: nobody else knows it
                if race is not None and engine.needs(race) and not pending.awaits(race):
                    engine.give_back([race])
                raise
        if engine.finished is not None:
            self._say_finished(engine.finished)
        return bool(pending)

    def record(self, info: TrialInfo, value: TrialValue) -> None:
        """Take in the result of a trial; the last one of a race completes it."""
        if info.seed is None or value.status == StatusType.RUNNING:
            return
        if end_of(value) is End.CANCELLED:  # nothing is known of it, and nobody needs to know
            return
        self._refuse_torn()
        if self.take_beforehand(info, value):
            self.show(info.config, value)
            return
        is_awaited = self.pending.awaits_result_of(info)
        completed = self.pending.take(info, value)
        if completed is None:
            trial = ToldTrial(info.config, InstanceKey(info.instance, info.seed), value)
            if trial not in self.told:  # a script that is started again tells it again
                logger.warning(
                    "A result was told of a configuration that AC-Band did not ask for; since "
                    "races have begun, it takes no part. Tell known results before the first ask."
                )
            return
        if is_awaited:  # of what is told again, the engine has the first
            self.show(info.config, value)
        self._completed += completed
        self._judge_completed()

    def _judge_completed(self) -> None:
        """Complete the races whose results are all known, and those that could not be recorded."""
        while self._completed:
            race = self._completed[0]
            try:
                self._complete(race)
            except BaseException:  # a full disk, Ctrl-C: it is tried again before the next race
                if not self.engine.needs(race.race):
                    self._completed.popleft()
                raise
            self._completed.popleft()

    # --- what is known beforehand ---------------------------------------------------------------

    def take_beforehand(self, info: TrialInfo, value: TrialValue) -> bool:
        """Let a result that is told before the first race take part; say whether it does.

        It is on record when this returns, but the run begins anew only when it is looked at next.
        """
        if self.started or info.seed is None or not is_result(value):
            return False
        names = self._scenario.instances
        is_raced_on = info.instance in names if names else info.instance is None
        if not is_raced_on:
            return False
        trial = ToldTrial(info.config, InstanceKey(info.instance, info.seed), value)
        if trial not in self.told:
            if not self.settings.memory:
                self._refuse_unplannable(trial)
            if self._recorder is not None:
                self._recorder.told(trial)
            self.told.add(trial)
            self._begun = None
        return True

    def _refuse_unplannable(self, trial: ToldTrial) -> None:
        """Raise an error if the paper's schedule has no room beside a result, before it is kept."""
        recorder, known = self._recorder, list(self.told)
        self.told.add(trial)
        try:
            self.begin()  # without a recorder: nothing is written
        finally:
            self.told, self._recorder, self._begun = Told(known), recorder, None

    # --- races --------------------------------------------------------------------------------

    def _open(self, race: Race) -> bool:
        """Queue the trials of a race, but for those whose results are known."""
        pending = self.pending.look_up(race, self.engine.key(race.instance))
        if self.runhistory.submitted + pending.n_new > self.trial_limit:
            self.engine.finish(
                f"n_trials={self._scenario.n_trials} leaves no room for another race"
            )
            return False
        self._announce(race)
        self.pending.add(pending)
        if not pending.missing:
            self._complete(pending)
        return True

    def _announce(self, race: Race) -> None:
        """Tell callbacks of configurations that race for the first time."""
        if self._config_selector is None:
            return
        if self._from_selector is not None:  # the selector has told of these itself
            numbers = map(self.configurations.number_of, self._from_selector.chosen)
            self._announced.update(number for number in numbers if number is not None)
        for number in race.racers:
            if number not in self._announced:
                self._announced.add(number)
                for callback in self._config_selector._callbacks:
                    callback.on_next_configurations_start(self._config_selector)
                    config = self.configurations[number]
                    callback.on_next_configurations_end(self._config_selector, config)

    def _complete(self, pending: PendingRace) -> None:
        """Tell the engine what a race brought.

        An interrupt has to wait: a race that is recorded but not judged could not be told again.
        """
        values = [value for value in pending.values if value is not None]
        with interrupts_held():
            self.started = True
            if self._recorder is not None:
                self._recorder.raced(pending, values)
            self._run.crashes.note(pending)
            try:
                self.engine.tell(pending.race, outcome_of(values, n_known=len(pending.told)))
            except BaseException as error:  # of proposals of the user's own, or Ctrl-C, twice
                self._torn_by = error
                raise
            self._record_plans()
            self._follow_leader(self.n_finished, self.used_walltime)

    def _refuse_torn(self) -> None:
        """Raise an error if a race was recorded but judged only in part."""
        if self._torn_by is not None:
            raise RuntimeError(
                f"a race was recorded but could not be judged, because of {self._torn_by!r}. No "
                "race is lost: start the script again, and the run continues"
            )

    def _record_plans(self) -> None:
        plans = self.engine.plans
        for plan in plans[self._n_planned :]:
            if str(plan) not in self._logged:  # a run may begin twice, to see whether it can
                self._logged.add(str(plan))
                logger.info("%s", plan)
            if self._recorder is not None:
                self._recorder.planned(plan)
        self._n_planned = max(self._n_planned, len(plans))

    def _say_finished(self, reason: str) -> None:
        if self._said_finished:
            return
        if self._recorder is not None:
            self._recorder.finished(reason)
        self._said_finished = True
        logger.info("AC-Band is finished: %s.", reason)
        if self.engine.leader is None:
            logger.warning("No trial has finished, so there is no incumbent.")

    def _take_earlier(self, place: RaceId) -> tuple[tuple[int, ...], Outcome] | None:
        """Return what a race brought in an earlier process, None if it was not run there."""
        self._taken = None if self._recorder is None else self._recorder.earlier(place)
        return None if self._taken is None else (self._taken.racers, self._taken.outcome)

    def _follow_recorded(self, race: Race) -> None:
        """Follow the leader through a race of an earlier process, as of the time of that race."""
        record, recorder = self._taken, self._recorder
        assert record is not None
        assert record.id == race.id
        assert recorder is not None
        if record.instance != race.instance:
            raise ReplayError(
                f"instance of race {race.id}: {record.instance} before, {race.instance} now"
            )
        recorder.taken_in(record)
        # It was judged once those before it were over, too.
        n_trials, walltime = self._moment
        self._moment = (max(n_trials, record.n_trials), max(walltime, record.walltime))
        self._follow_leader(*self._moment)

    def _follow_leader(self, n_trials: int, walltime: float) -> None:
        """Make the leader the incumbent, as of that moment."""
        leader = self.engine.leader
        if leader is not None and self._leaders[-1:] != [leader]:
            self.follow(leader, self.configurations[leader], n_trials, walltime)

    # --- the beginning -----------------------------------------------------------------------

    def _proposals(self) -> Proposals | None:
        """Return what proposes new configurations; None if all are drawn uniformly."""
        wanted = self.settings.proposals
        if wanted == "learned":
            return Learned(self._scenario.configspace, seed=self._seed, racing=self.racing)
        if wanted == "selector":
            # Before there is a facade there is no selector: a plan can be looked at without.
            selector, known = self._config_selector, self._from_selector
            if selector is not None and (known is None or known.selector is not selector):
                self._from_selector = FromSelector(selector)
            elif known is not None:
                known.rewind()
            return self._from_selector
        return None if wanted == "uniform" else cast(Proposals, wanted)

    def _given(self) -> list[Configuration]:
        """Return θ_0, what the user adds, and the best of those whose results are known."""
        given = []
        if self.settings.first == "default":
            given.append(self._scenario.configspace.get_default_configuration())
            given[0].origin = "Initial Design: Default"
        added = self._additional_configs
        if added is None and self._config_selector is not None:
            # Designs name themselves in the origin of what they sample, "Initial Design: Sobol";
            # a user's own configuration has another one, or "Initial design" if it had none.
            design = self._config_selector._initial_design_configs
            added = [c for c in design if not str(c.origin).startswith("Initial Design:")]
        k = self.settings.racers(racing=self.racing)
        return [*given, *(added or ()), *self.told.configs(most=k)]


def _name_of(statistic: Statistic) -> str:
    text = repr(statistic)
    # A user's own object may print with its address, which is another in the next process.
    return describe_object(statistic) if " at 0x" in text else text
