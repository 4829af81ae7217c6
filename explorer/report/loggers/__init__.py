"""Key figures and findings of a run in the experiment trackers people use: one file per tracker."""
