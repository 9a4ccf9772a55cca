"""AC-Band and its rivals behind one interface, each written from its paper.

To add one, write its module and enter it in ``registry``.

===================  =========================================================================
``registry``         all of them by name
``method``           what one is that runs on a table, by its own rule or until a limit
``acband``           AC-Band: by the paper's rules, as the facade runs it, searching a space
``halving``          Successive Halving and Hyperband; ``roar``; ``random_racing``
``capsandruns``      CapsAndRuns, CAR++ and ICAR, compiled in ``caps_kernel``;
                     ``leapsandbounds``; ``procrastination`` (all pay into an ``account``)
``space``            what one is that searches a space: ``smac``, ``gga``, and, by
                     ``answering`` their questions, ``irace`` and ``paramils``
===================  =========================================================================
"""
