"""C helpers, inlined where they are cimported: there is no extension module behind them."""
