"""The adapters to SMAC: they translate between the core and SMAC's objects, and only that.

==================  =========================================================================
``facade``          what users call; ``options`` its arguments, ``scenario`` what SMAC's means here
``intensifier``     asks the engine for races and tells it outcomes; ``pending`` those being run;
                    ``incumbent`` who leads, as SMAC wants to see it; ``told`` what was known before
``configurations``  the points of the space behind the core's numbers; ``proposals`` of new ones
``runners``         run the target; ``trial_values`` say in SMAC's words what came of it
``optimizer``       SMAC's loop, with a journal; ``runhistory`` its memory of trials
``identity``        what makes two runs the same; ``description`` two targets
``warm_start``      results that are known before a run; ``validation`` runs apart from it
``progress``        what a terminal or a notebook shows; ``logs`` what is said
==================  =========================================================================
"""
