"""ScrapeOrder: what the metrics scraper of a run has to scrape."""

from dataclasses import dataclass
from pathlib import Path

from loadgen.metrics.server.series import Source
from loadgen.workload.prefix_cache.cache_block import CacheBlock


@dataclass(frozen=True)
class ScrapeOrder:
    """What to scrape during a run.

    Attributes:
        sources: Where the servers' metrics are.
        folder: Where to write them.
        gpus: Whether to read this machine's GPUs.
        last_scrapes: How often it is scraped at most after the run, until every server is idle.
        missing: Base URLs of targets without metrics, while others have some.
        cache_block: The unit of the servers' prefix caches, by the metrics that were found; None: they do not say.
    """

    sources: tuple[Source, ...]
    folder: Path
    gpus: bool = False
    last_scrapes: int = 5
    missing: tuple[str, ...] = ()
    cache_block: CacheBlock | None = None
