"""Lies: what load generators have been seen to do, and what of loadgen's notices it."""

from bench.mutants.audit_lies import AUDIT_LIES
from bench.mutants.compare_lies import COMPARE_LIES
from bench.mutants.exchange_lies import EXCHANGE_LIES
from bench.mutants.explain_lies import EXPLAIN_LIES
from bench.mutants.judge_lies import JUDGE_LIES
from bench.mutants.measurement_lies import MEASUREMENT_LIES
from bench.mutants.report_lies import REPORT_LIES
from bench.mutants.search_lies import SEARCH_LIES
from bench.mutants.server_lies import SERVER_LIES

LIES = (
    *MEASUREMENT_LIES,
    *COMPARE_LIES,
    *AUDIT_LIES,
    *JUDGE_LIES,
    *REPORT_LIES,
    *SEARCH_LIES,
    *SERVER_LIES,
    *EXPLAIN_LIES,
    *EXCHANGE_LIES,
)
