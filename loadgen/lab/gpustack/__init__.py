"""GPUStack's benchmark jobs: their command line as runs of loadgen, and the summary that
GPUStack reads.
"""
