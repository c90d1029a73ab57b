"""The pictures of docs/."""
