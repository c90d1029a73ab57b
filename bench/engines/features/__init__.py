"""Features that need more than single requests, on real engines."""
