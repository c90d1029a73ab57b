"""ScrapeOrder: what the metrics scraper of a run has to scrape."""

from dataclasses import dataclass
from pathlib import Path

from loadgen.metrics.server.series import Source
from loadgen.workload.prefix_cache.cache_block import CacheBlock


@dataclass(frozen=True)
class ScrapeOrder:
    """What to scrape during a run."""

    sources: tuple[Source, ...]
    folder: Path
    gpus: bool = False
    last_scrapes: int = 5  # how often it is scraped at most after the run, until every server is idle
    missing: tuple[str, ...] = ()  # base URLs of targets without metrics, while others have some
    # the unit of the servers' prefix caches, by the metrics that were found; None: they do not say
    cache_block: CacheBlock | None = None
