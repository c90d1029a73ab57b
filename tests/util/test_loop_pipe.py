"""LoopPipe: nobody's descriptor is closed but the pipe's, and it is closed once."""

import asyncio
import os

import pytest
import uvloop

from loadgen.util.loop_pipe import LoopPipe


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_the_loop_closes_the_copy_alone(run) -> None:
    async def read() -> tuple[bytes, int]:
        commands, copy = asyncio.StreamReader(), LoopPipe(end)
        protocol = asyncio.StreamReaderProtocol(commands)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, copy)
        data = await commands.read(1)
        transport.close()
        await asyncio.sleep(0.01)
        return data, copy.fileno()

    end, far = os.pipe()
    os.write(far, b"x")
    data, fd = run(read())
    assert (data, is_open(end), is_open(fd)) == (b"x", True, False)
    os.close(end)
    os.close(far)


def test_a_file_that_got_the_number_meanwhile_stays_open() -> None:
    async def close_twice() -> None:
        pipe = LoopPipe(end)
        os.close(pipe.fileno())  # as libuv does
        other = os.open(os.devnull, os.O_RDONLY)
        assert other == pipe.fileno()
        pipe.close()
        assert is_open(other)
        os.close(other)

    end, far = os.pipe()
    uvloop.run(close_twice())
    os.close(end)
    os.close(far)
