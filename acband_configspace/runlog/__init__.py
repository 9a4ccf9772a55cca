"""What a run leaves behind: its journal, and what can be made of it.

==================  =========================================================================
``journal``         written as the run goes; ``records`` its lines, ``lock``, ``recovery``
``replay``          a run, its journal played through the engine; ``played`` who met whom in it
``estimates``       how good those are that have led; ``verdict`` on test instances; ``words``
``report``          one HTML page, with its ``charts``; ``plotting`` by matplotlib; ``csv``
==================  =========================================================================
"""
