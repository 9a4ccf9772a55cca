"""The command line: reads the files people have, and calls the facade.

Scenario files are data: nothing in one is executed but the command it names.
"""
