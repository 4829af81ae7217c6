"""The definitions of other tools, reproduced on a run, so that numbers can be compared one by one (docs/comparison.md)."""
