"""The pure core: AC-Band as the paper has it and as this package searches. Sans-I/O.

One engine, two searches behind its door:

==================  =========================================================================
``settings``        every option, checked once, with the presets
``engine``          ask it for a race, tell it an outcome, and it says who leads
``race``            RaceId, Race and Outcome; ``ends`` how a run ended
``instances``       which instance a number stands for
``statistics``      what decides a group: wins, mean, quantile; ``stopping`` when it is decided
------------------  -------------------------------------------------------------------------
``acband``          the paper's Algorithms 1, 2 and 3
``schedule``        the paper's formulas as one value; ``epochs`` and ``rounds`` are its parts
``race_budget``     the instances that a schedule hands out, and takes back
``paper_races``     the paper's schedule, race by race
``passes``          the paper's schedule under a time limit: again and again, ever longer
------------------  -------------------------------------------------------------------------
``search``          the default search, with memory of every cost; ``search_plan`` its sizes
``search_costs``    its rounds where every cost is known; ``search_races`` where losers are stopped
``memory``          what is known of configurations on instances; ``earlier`` before the run
``rank_model``      what is expected of a configuration, learned from who is better than whom
==================  =========================================================================
"""
