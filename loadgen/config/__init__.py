"""The settings of a run: fields by topic, their flags, validation, SLO limits, presets, and
their form in files.
"""
