"""The lab: studies, imports and audits of published results, other tools' rules and results,
GPUStack's jobs.
"""
