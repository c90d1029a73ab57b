"""What a run is asked: settings, the metadata of their flags, SLOs, presets."""
