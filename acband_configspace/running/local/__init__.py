"""Races on this machine: the race track and the processes below it."""
