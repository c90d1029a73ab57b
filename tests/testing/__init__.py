"""The test kit itself: its servers do and know what they say."""
