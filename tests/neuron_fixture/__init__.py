"""Made-up Neuron Explorer profiles for tests: true to the official schema, seeded, with numbers known beforehand.

Nothing here was measured on hardware, and nothing made from it may be described as if it had been.
"""
