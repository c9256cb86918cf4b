"""Stands in for Python in forked processes: what they start is forked, too; see `warm`.

Run as ``python -IS forked_python.py SOCKET ARGUMENTS``, it has the process forked that ``python
ARGUMENTS`` would be, gives it its files, its session and the signals it gets, and ends as that
ends. If it is killed, so is that. It starts often, and imports little.
"""

import json
import os
import signal
import socket
import struct
import sys

NUMBER = struct.Struct("!i")
#: of the interpreter, as `multiprocessing` passes them on, that are understood
OPTIONS = ("-B", "-P")
#: signals that are passed on
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def ask(path: str, request: dict[str, object], files: list[int]) -> socket.socket:
    """Have a process forked; return what it is heard and told by.

    Its number is heard, and in the end its exit code. It is told numbers of signals, and killed
    where this is closed before.
    """
    text = json.dumps(request).encode()
    channel = socket.socket(socket.AF_UNIX)
    channel.connect(path)
    socket.send_fds(channel, [NUMBER.pack(len(text))], files)
    channel.sendall(text)
    return channel


def main() -> None:
    """Be the process."""
    path, *words = sys.argv[1:]
    if next((word for word in words if word not in OPTIONS), "") not in ("-m", "-c"):
        os.execv(sys.executable, [sys.executable, *words])
    found = sorted(int(each) for each in os.listdir("/dev/fd"))  # noqa: PTH208 - imports less
    files = [each for each in found if _is_open(each)]  # not the one that has listed them
    request = {
        "words": ["python", *words],
        "cwd": os.getcwd(),  # noqa: PTH109
        "env": dict(os.environ),
        "files": files,
        "session": os.getsid(0) == os.getpid(),
    }
    channel = ask(path, request, files)
    for number in PASSED_ON:
        signal.signal(number, lambda got, _: channel.sendall(NUMBER.pack(got)))
    for each in files[3:]:  # whoever reads from one waits until it is closed everywhere
        os.close(each)
    channel.recv(NUMBER.size)
    told = channel.recv(NUMBER.size)
    code = NUMBER.unpack(told)[0] if told else 1
    if code < 0:
        if -code in PASSED_ON:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
