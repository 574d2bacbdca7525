"""Strangers at the port where the nodes of a job step meet: more than are served at a time, each of which sends a byte now and then.

    dribble.py STEP NODES  returns when all have connected; they go on in the background
"""
import os
import re
import select
import socket
import sys

CALLERS = 100


def ports(step):
    """Computes the ports as crates/core/process/src/slurm/meet.rs does."""
    number = 0x811C9DC5
    for byte in f"{os.getuid()}/{step}".encode():
        number = (number ^ byte) * 0x01000193 % 2**32
    return [20000 + (number + turn * 2999) % 2**32 % 12000 for turn in range(4)]


def call(addresses):
    """Connects to the first address that listens."""
    while True:
        for address in addresses:
            try:
                return socket.create_connection(address, timeout=5)
            except OSError:
                pass


if len(sys.argv) == 3:
    # A stranger has nothing of the job, not even its environment.
    os.execve(sys.executable, [sys.executable, *sys.argv, "alone"], {})
# A node's number is the last part of its address.
node = re.search(r"\d+", sys.argv[2]).group()
first = [(f"10.78.0.{node}", port) for port in ports(sys.argv[1])]
callers = [call(first) for _ in range(CALLERS)]
if os.fork() > 0:
    os._exit(0)
for stream in range(3):
    os.close(stream)
# Starts like a valid first message: its length, and a credential.
for byte in b"\0\1\0\0MUNGE:" + 100 * b"A":
    for caller in list(callers):
        try:
            caller.send(bytes([byte]))
        except OSError:
            callers.remove(caller)
    select.select([], [], [], 1)
