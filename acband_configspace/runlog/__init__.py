"""What a run leaves behind: its journal, and what can be made of it."""
