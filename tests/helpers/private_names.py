"""The private names of SMAC and ConfigSpace that the plugin rests on, and what each is for.

SMAC has no public word for most of what a plugin of this kind does, so a new version of it may move
a name without notice. All of them are listed here, under the class that defines them: a test looks
for each in what is installed and says which have moved, and another that the plugin uses no other.
"""

from __future__ import annotations

from collections.abc import Mapping

PRIVATE_NAMES: Mapping[str, Mapping[str, str]] = {
    "ConfigSpace.configuration.Configuration": {
        "_values": "set to what it would compute itself, for many at a time",
        "_vector": "set to a copy: what was sampled is a view of all that was sampled with it",
    },
    "smac.facade.abstract_facade.AbstractFacade": {
        "_callbacks": "to close the progress display after an exception",
        "_get_optimizer": "overridden, to run our optimizer in place of SMBO",
        "_intensifier": "to reach AC-Band",
        "_overwrite": "passed on to the optimizer",
        "_runhistory": "set to a run history whose cost per trial is constant",
        "_runner": "set to ours, before SMAC would wrap it in Dask",
        "_scenario": "to read the limits, the instances and the space",
        "_update_dependencies": "overridden, to put in the run history and the runner",
    },
    "smac.initial_design.abstract_initial_design.AbstractInitialDesign": {
        "_additional_configs": "the configurations that the user adds",
    },
    "smac.intensifier.abstract_intensifier.AbstractIntensifier": {
        "_config_selector": "to reach the initial design of another facade",
        "_incumbents": "set to the leader",
        "_incumbents_changed": "counted with it",
        "_runhistory": "to know whether a facade has set it yet",
        "_scenario": "to read the instances and the space",
        "_seed": "what everything random is drawn from",
        "_trajectory": "to date the incumbents of an earlier process",
    },
    "smac.main.config_selector.ConfigSelector": {
        "_callbacks": "to tell them of a configuration that races for the first time",
        "_initial_design_configs": "the configurations that the user adds, in another facade",
    },
    "smac.main.smbo.SMBO": {
        "_callbacks": "to tell them of a new incumbent",
        "_add_results": "to take in results while waiting for a round to end",
        "_finished": "saved, and set when a run that is resumed has nothing left to do",
        "_initialize_state": "overridden, to resume from the journal without a prompt",
        "_intensifier": "saved with SMAC's files",
        "_overwrite": "whether an earlier run is to be continued",
        "_runhistory": "saved with SMAC's files, and filled when a run is resumed",
        "_runner": "to wait for races and to stop them",
        "_scenario": "to read the limits and the output directory",
        "_stop": "whether a callback or the cost threshold has ended the run",
        "_trial_generator": "made anew when a run goes on that a callback has ended",
        "_used_target_function_cputime": "set to the time used by earlier processes",
        "_used_target_function_walltime": "set to the time used by earlier processes",
    },
    "smac.runhistory.runhistory.RunHistory": {
        "_add": "overridden, to keep sums in place of a look at all trials",
        "_config_id_to_isk_to_budget": "kept up to date by our _add",
        "_config_ids": "the number of a configuration",
        "_cost": "overridden, since what a loser costs is not known",
        "_cost_per_config": "kept up to date by our _add",
        "_data": "the trials",
        "_ids_config": "the configuration of a number",
        "_min_cost_per_config": "kept up to date by our _add",
        "_n_id": "set, so that configurations have one number everywhere",
        "_num_trials_per_config": "kept up to date by our _add",
        "_objective_bounds": "kept up to date by our _add",
        "_running_trials": "kept up to date by our _add",
        "_update_objective_bounds": "called when a trial is replaced, as sums do not forget",
        "_finished": "counted where trials of an earlier process are added again",
        "_n_objectives": "likewise: it is one",
        "_submitted": "likewise counted",
    },
    "smac.runner.abstract_runner.AbstractRunner": {
        "_required_arguments": "the names of the arguments a target function must take",
        "_results_queue": "where finished trials are put for SMAC to fetch",
        "_scenario": "to read the cutoff and the limits",
    },
    "smac.runner.dask_runner.DaskParallelRunner": {
        "_single_worker": "what it runs trials with: it knows which arguments are passed on",
    },
    "smac.scenario.Scenario": {
        "_change_output_directory": "called after naming a scenario that has no name",
    },
}
"""The path of a class -> a private attribute or method of it -> what it is used for."""
