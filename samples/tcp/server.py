"""Answers each line with a word in front of it: python3 server.py PORT WORD"""

import signal
import socketserver
import sys


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(sys.argv[2].encode() + b" " + line)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with Server(("0.0.0.0", int(sys.argv[1])), Echo) as server:
    server.serve_forever()
