"""A program that finds its servers by the xDS client of gRPC's C core. Arguments: target, calls, and a header as name=value."""
import collections
import json
import sys

import grpc

target, calls, header = sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""
metadata = [tuple(header.split("="))] if header else None
counts = collections.Counter()
with grpc.insecure_channel(target) as channel:
    who = channel.unary_unary("/test.Greeter/Who")
    for _ in range(calls):
        try:
            answer = who(b"", timeout=15, wait_for_ready=True, metadata=metadata).decode()
        except grpc.RpcError as error:
            answer = "error " + error.details()
        counts[answer] += 1
print(json.dumps(counts), end="")
