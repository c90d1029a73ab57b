"""What one streamed event says, as a set of flags: those of c/event_flags.pxd."""

from loadgen.core.record_json import FLAGS

CONTENT = FLAGS["content"]
REASONING = FLAGS["reasoning"]
OTHER = FLAGS["other"]
RESULT = FLAGS["result"]
TOKENS = CONTENT | REASONING | OTHER | RESULT
CHOICE = FLAGS["choice"]
ROLE = FLAGS["role"]
EMPTY = FLAGS["empty"]
FINISH = FLAGS["finish"]
USAGE = FLAGS["usage"]
OLD_REASONING = FLAGS["reasoning_content"]
TOOL = FLAGS["tool"]
DONE = FLAGS["done"]
SO_FAR = FLAGS["so_far"]
