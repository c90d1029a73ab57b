"""One request of vLLM's Python client; the interpreter that has its request functions runs this.

python vllm_requests.py URL API REQUEST

API is completions or chat, REQUEST a JSON object of the fields of `RequestFuncInput`.
"""

import asyncio
import json
import sys

import aiohttp
import endpoint_request_func as vllm

FUNCTIONS = {
    "completions": vllm.async_request_openai_completions,
    "chat": vllm.async_request_openai_chat_completions,
}


async def send(url: str, api: str, request: dict) -> None:
    """Send one request by vLLM's own function."""
    async with aiohttp.ClientSession() as session:
        await FUNCTIONS[api](vllm.RequestFuncInput(api_url=url, **request), session)


asyncio.run(send(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
