"""The command line: reads the files people have, and calls the facade.

Scenario files are data: nothing in one is executed but the command it names.

==================  =========================================================================
``main``            reads the command line; ``commands`` what each command does
``scenario``        TOML, AClib's and irace's scenarios, read into one value
``spaces``          parameter files of all kinds, read and written
``command_lines``   what is run; ``results`` what it prints
``facade``          from a scenario to the facade; ``run_directory`` back from a run to its scenario
==================  =========================================================================
"""
