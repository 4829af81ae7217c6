"""Which user line every thread executes, moment by moment: recorders, and the replay of what they recorded."""
