"""A client with many connections: `python -m benchmarks.load PORT KEY SCENARIO ...` prints JSON.

Plain sockets, because a comfortable client would need more of the machine than the server.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time


async def connection(port: int, head: str, people: list[str], until: float, out: dict) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    moment = out["first"]
    while time.monotonic() < until:
        for person in people:
            body = json.dumps({"time": moment, "state": (moment * 7) % out["states"]})
            path = f"/v1/scenarios/{out['scenario']}/people/{person}/releases"
            begun = time.monotonic()
            writer.write(
                f"POST {path} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            header = await reader.readuntil(b"\r\n\r\n")
            length = header.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            answer = await reader.readexactly(int(length))
            out["seconds"].append(time.monotonic() - begun)
            if not header.startswith(b"HTTP/1.1 200") or b'"repeated":false' not in answer:
                out["errors"] += 1
            if time.monotonic() >= until:
                break
        moment += 1
    out["next"] = max(out.get("next", 0), moment)
    writer.close()


async def load(
    port: int, key: str, scenario: str, states: int, connections: int, seconds: float, first: int
) -> dict:
    head = f"Host: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    out = {"scenario": scenario, "states": states, "seconds": [], "errors": 0, "first": first}
    begun = time.monotonic()
    await asyncio.gather(
        *(
            connection(port, head, [f"c{number}"], begun + seconds, out)
            for number in range(connections)
        )
    )
    taken = time.monotonic() - begun
    waits = sorted(out["seconds"])
    return {
        "rate": (len(waits) - out["errors"]) / taken,  # a refusal is no release
        "p50": waits[len(waits) // 2],
        "p99": waits[int(len(waits) * 0.99)],
        "answers": len(waits),
        "errors": out["errors"],
        "next": out["next"],
    }


if __name__ == "__main__":
    port, key, scenario, states, connections, seconds, first = sys.argv[1:]
    result = asyncio.run(
        load(int(port), key, scenario, int(states), int(connections), float(seconds), int(first))
    )
    print(json.dumps(result))
