"""C helpers in header files (.pxd): inlined where they are cimported, with no extension module
behind them.
"""
