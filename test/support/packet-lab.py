"""One party of a packet lab, inside a network namespace. It listens on ports, sends packets on demand, and prints every
packet that reached a listener. Node can neither become a user for one socket nor ask for an original destination.

Arguments: one JSON object {uid, gid, ports, transparent}. Input: a JSON object per line for each packet to send.
Output: "ready", then a JSON object per arrival.
"""
import errno, json, os, selectors, socket, struct, sys

SO_ORIGINAL_DST = 80
IPV6_TRANSPARENT = 75
IP_TRANSPARENT = 19
IP_FREEBIND = 15

config = json.loads(sys.argv[1])
selector = selectors.DefaultSelector()
FAMILIES = {"v4": socket.AF_INET, "v6": socket.AF_INET6}
ANY = {"v4": "0.0.0.0", "v6": "::"}


def become(uid, gid):
    os.seteuid(0)
    os.setegid(gid)
    os.seteuid(uid)


def say(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def open_socket(family, kind):
    one = socket.socket(FAMILIES[family], kind)
    one.setblocking(False)
    return one


def listen(family, port, transparent):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        become(config["uid"], config["gid"])  # the owner of a socket is who made it
        one = open_socket(family, kind)
        os.seteuid(0)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == "v6":
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if transparent:
            level, option = (socket.IPPROTO_IP, IP_TRANSPARENT) if family == "v4" else (socket.IPPROTO_IPV6, IPV6_TRANSPARENT)
            one.setsockopt(level, option, 1)
        one.bind((ANY[family], port))
        if kind == socket.SOCK_STREAM:
            one.listen(512)
            selector.register(one, selectors.EVENT_READ, lambda s=one: accept(s, family, port))
        else:
            selector.register(one, selectors.EVENT_READ, lambda s=one: receive(s, port))


def original(conn, family):
    try:
        if family == "v4":
            raw = conn.getsockopt(socket.IPPROTO_IP, SO_ORIGINAL_DST, 16)
            return [socket.inet_ntop(socket.AF_INET, raw[4:8]), struct.unpack("!H", raw[2:4])[0]]
        raw = conn.getsockopt(socket.IPPROTO_IPV6, SO_ORIGINAL_DST, 28)
        return [socket.inet_ntop(socket.AF_INET6, raw[8:24]), struct.unpack("!H", raw[2:4])[0]]
    except OSError:
        return list(conn.getsockname()[:2])  # not tracked: the destination was never changed


def accept(server, family, port):
    conn, _ = server.accept()
    conn.setblocking(False)
    selector.register(conn, selectors.EVENT_READ, lambda: read(conn, family, port))


def read(conn, family, port):
    try:
        token = conn.recv(64).decode()
        if token:
            say({"token": token, "port": port, "original": original(conn, family)})
    except OSError:
        pass
    close(conn)


def receive(server, port):
    say({"token": server.recv(64).decode(), "port": port})


def close(one):
    selector.unregister(one)
    one.close()


def send(order):
    token, family = order["token"], order["family"]
    udp = order["protocol"] == "udp"
    become(order["uid"], order["gid"])
    one = open_socket(family, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM)
    os.seteuid(0)
    try:
        one.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        if order.get("source") or order.get("sourcePort"):
            one.bind((order.get("source") or ANY[family], order.get("sourcePort") or 0))
        to = (order["destination"], order["port"])
        if udp:
            one.sendto(token.encode(), to)
            one.close()
            return
        code = one.connect_ex(to)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
        selector.register(one, selectors.EVENT_WRITE, lambda: connected(one, token))
    except OSError as error:
        one.close()
        say({"token": token, "error": str(error)})
    finally:
        become(config["uid"], config["gid"])


def connected(one, token):
    code = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        say({"token": token, "error": os.strerror(code)})
        close(one)
        return
    one.send(token.encode())
    selector.modify(one, selectors.EVENT_READ, lambda: finish(one))


def finish(one):
    try:
        one.recv(1)
    except OSError:
        pass
    close(one)


def orders():
    global pending
    data = os.read(0, 1 << 20)
    if not data:
        sys.exit(0)
    *lines, pending = (pending + data).split(b"\n")
    for line in lines:
        send(json.loads(line))


pending = b""
for port in config["ports"]:
    for family in FAMILIES:
        listen(family, port, port in config["transparent"])
become(config["uid"], config["gid"])
selector.register(0, selectors.EVENT_READ, orders)
print("ready", flush=True)
while True:
    for key, _ in selector.select():
        key.data()
