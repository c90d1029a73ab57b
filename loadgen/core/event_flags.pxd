# cython: language_level=3
"""What one streamed event says, as a set of flags: the one definition for C and for Python."""

cpdef enum:
    # The kinds of token that an event bears.
    CONTENT = 1
    REASONING = 2
    OTHER = 4            # a refusal, or arguments of a tool call
    RESULT = 4096        # no token: all embeddings or scores of an answer in one piece
    TEXTS = 4103         # any of these four
    # a token without text: token ids, usage so far, or the usage of the whole answer prove it
    SILENT = 8192
    TOKENS = 12295       # any of these five
    # What else it says: load generators differ in which of these they take for a token.
    CHOICE = 8           # it has a choice
    ROLE = 16            # it names a role
    EMPTY = 32           # its content or text is an empty string
    FINISH = 64          # it has a finish reason
    USAGE = 128          # it has a usage object
    OLD_REASONING = 256  # it has a `reasoning_content` that is text
    TOOL = 512           # it calls a tool
    DONE = 1024          # it is [DONE]
    # its text and its counts are those of the answer so far: an event of SGLang's /generate
    CUMULATIVE = 2048
    # its delta has no text and names no role, and neither EMPTY nor FINISH alone says so
    BARE = 16384
