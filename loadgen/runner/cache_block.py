"""The block size of the server's prefix cache: as given, or as its metrics say."""

import contextlib

from loadgen.config.settings import RunSettings
from loadgen.errors import Unreachable
from loadgen.metrics.server import cache_block
from loadgen.metrics.server.scrape_order import ScrapeOrder
from loadgen.runner.metrics_scraper_main import get
from loadgen.workload.prefix_cache.cache_block import CacheBlock


async def find_cache_block(settings: RunSettings, scraping: ScrapeOrder | None) -> CacheBlock:
    """Find the size of a block.

    Args:
        settings: The settings of the run.
        scraping: Where the servers have metrics; None: nowhere.
    """
    if settings.cache_block_size is not None:
        return CacheBlock(settings.cache_block_size, "--cache-block-size")
    for source in scraping.sources if scraping else ():
        with contextlib.suppress(Unreachable):
            reply = await get(source)
            if reply.status == 200 and (found := cache_block.read(reply.body)):
                return found
    return CacheBlock()
