"""The commands of ``acband``.

Each is a module with a docstring (its help text, an example included), a function
``add_arguments(parser)`` and a function ``run(arguments)`` that returns the exit code.
"""
