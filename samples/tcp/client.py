"""Sends a line and prints the answer: python3 client.py HOST PORT WORD [TIMES]"""

import socket
import sys

host, port, word, *times = sys.argv[1:]
for _ in range(int(times[0]) if times else 1):
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(word.encode() + b"\n")
        print(connection.makefile().readline().strip() or "hung up")
