"""The Grafana dashboard: its queries in a real Prometheus."""
