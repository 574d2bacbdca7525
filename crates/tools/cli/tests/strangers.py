#!/usr/bin/env python3
"""What a stranger on the network does to daemons: scans, garbage, floods, and datagrams overheard and sent again.

    strangers.py scan|garbage|half-open ADDRESS PORT
    strangers.py overhear INTERFACE COUNT FILE          takes datagrams down as they pass
    strangers.py replay FILE ADDRESS PORT               sends them again, to whom they were sent or to this port
"""
import os
import socket
import struct
import sys


def answer(sock):
    """What comes back before the other side hangs up."""
    sock.settimeout(8)
    try:
        return sock.recv(4096)
    except ConnectionError:
        return b""


def scan(address, port):
    """Opens with what scanners open with. Nothing may come back."""
    openings = [
        b"",
        b"GET / HTTP/1.0\r\n\r\n",
        b"SSH-2.0-scan\r\n",
        bytes.fromhex("16030100c8010000c40303") + os.urandom(193),
        b"regatta\x02" + bytes(84),
        b"regatta\x02" + b"\xff" * 4096,
        b"{\"identity\":\"\",\"ask\":\"down\"}\n",
    ]
    for opening in openings:
        with socket.create_connection((address, port)) as sock:
            sock.sendall(opening)
            said = answer(sock)
            assert said == b"", f"{opening!r} was answered with {said!r}"
    print(f"{len(openings)} openings, no answer")


def garbage(address, port):
    """Datagrams of every length, some with the right beginning."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for length in range(0, 1600):
        sock.sendto(os.urandom(length), (address, port))
        sock.sendto((b"rgt\x01" + os.urandom(length))[:1472], (address, port))
    sock.sendto(os.urandom(60000), (address, port))
    print("sent")


def half_open(address, port):
    """More connections than any daemon keeps, which say nothing, or begin and stop; held until our input ends."""
    socks = []
    for number in range(400):
        sock = socket.create_connection((address, port))
        if number % 2:
            sock.sendall(b"regatta\x02")
        socks.append(sock)
    print("held", flush=True)
    sys.stdin.read()


def overhear(interface, count, file):
    """Payloads of UDP over IPv4, with where they went."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    sock.bind((interface, 0))
    sock.settimeout(30)
    print("listening", flush=True)
    heard = []
    while len(heard) < count:
        packet = sock.recv(4096)[14:]
        if len(packet) < 28 or packet[0] != 0x45 or packet[9] != 17:
            continue
        port, length = struct.unpack("!HH", packet[22:26])
        heard.append((socket.inet_ntoa(packet[16:20]), port, packet[28 : 20 + length]))
    with open(file, "wb") as out:
        for address, port, payload in heard:
            out.write(socket.inet_aton(address) + struct.pack("!HH", port, len(payload)) + payload)
    print(f"heard {len(heard)}")


def replay(file, address, port):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    data, sent = open(file, "rb").read(), 0
    while data:
        to, (to_port, length) = socket.inet_ntoa(data[:4]), struct.unpack("!HH", data[4:8])
        payload, data = data[8 : 8 + length], data[8 + length :]
        for _ in range(20):
            sock.sendto(payload, (to, to_port))
            sock.sendto(payload, (address, port))
            sent += 2
    print(f"sent {sent}")


def main():
    what, *rest = sys.argv[1:]
    numbers = [int(word) if word.isdigit() else word for word in rest]
    {"scan": scan, "garbage": garbage, "half-open": half_open, "overhear": overhear, "replay": replay}[what](*numbers)


main()
