"""The result of a run as a typed tree, from which its JSON and its JSON Schema come."""

from loadgen.report.result.run_result import SCHEMA, RunResult

__all__ = ["SCHEMA", "RunResult"]
