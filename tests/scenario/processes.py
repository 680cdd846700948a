"""The programs of a scenario: the proxy under test, Debian's nginx, and the load generator's origin.

Each one listens on a port that the kernel chose, is ended by its process id, and dies with the test.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def eventually(what, probe, seconds=10.0):
    """Asks `probe` until its answer is true, and returns it; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.01)


def program(name):
    """The path of a program that a scenario cannot do without."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if path is None:
        raise AssertionError(f"{name} is not installed: packaging/install_packages.sh build test")
    return path


def built(name):
    """The path of one of our own programs; ctest says where they were built."""
    path = os.path.join(os.environ.get("SECONDSIGHT_BUILD", "build/release"), name)
    if not os.path.exists(path):
        raise AssertionError(f"{path} is not there: build it, or set SECONDSIGHT_BUILD")
    return os.path.abspath(path)


class Process:
    """One child with its output in a file."""

    def __init__(self, arguments, log_path, death_signal=signal.SIGKILL, **options):
        self.log_path = log_path
        with open(log_path, "ab") as log:
            self.child = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, death_signal), **options)

    @property
    def pid(self):
        return self.child.pid

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def log_field(self, message, name, seconds=10.0):
        """The value of `name=` on the line that says `message`, once it is there."""
        def probe():
            for line in self.log().splitlines(keepends=True):
                if message in line and f"{name}=" in line and line.endswith("\n"):
                    return line.split(f"{name}=", 1)[1].split()[0]
            if self.child.poll() is not None:
                raise AssertionError(f"ended with {self.child.returncode}:\n{self.log()}")
            return None
        return eventually(f'"{message}" in {self.log_path}', probe, seconds)

    def send(self, number):
        self.child.send_signal(number)

    def wait(self, seconds=10.0):
        """The exit code; negative: the signal that ended it."""
        return self.child.wait(seconds)

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()


class Proxy(Process):
    """secondsight, ready for requests."""

    def __init__(self, config_path, log_path, seconds=10.0, **options):
        open(log_path, "wb").close()  # the ports of an earlier run on the same files are not ours
        super().__init__([built("secondsight"), "--config", config_path], log_path, **options)
        self.port = self._port("listening", seconds)
        self.admin_port = self._port("admin listening", seconds)
        eventually("info ready", lambda: " info ready\n" in self.log(), seconds)

    def _port(self, message, seconds):
        quoted = f'"{message}"' if " " in message else f"info {message} "
        return int(self.log_field(quoted, "address", seconds).rsplit(":", 1)[1])

    def url(self, target):
        return f"http://127.0.0.1:{self.port}{target}"

    def memory_kib(self, field):
        """VmRSS (now) or VmHWM (its peak)."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
        raise AssertionError(f"no {field}")


def toml(tables):
    """{"cache": {"memory": "32MiB"}} as TOML text."""
    def value(v):
        return str(v) if isinstance(v, int) else '"' + v + '"'
    return "".join(
        f"[{name}]\n" + "".join(f"{key} = {value(v)}\n" for key, v in table.items())
        for name, table in tables.items())


class Nginx(Process):
    """nginx with one worker, the files of `www` and a line per request in its access log.

    nginx takes no port 0, but it does take listening sockets from whom it replaces, by the numbers
    in $NGINX: so the socket is made here, and no other program can come between.
    """

    def __init__(self, directory, locations, port=0):
        self.directory = directory
        self.www = os.path.join(directory, "www")
        os.makedirs(self.www, exist_ok=True)
        self.access_log = os.path.join(directory, "access.log")
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(511)
            listener.set_inheritable(True)
            self.port = listener.getsockname()[1]
            config = os.path.join(directory, "nginx.conf")
            with open(config, "w", encoding="utf-8") as out:
                out.write(self._config(locations))
            super().__init__(
                [program("nginx"), "-c", config, "-p", directory,
                 "-e", os.path.join(directory, "error.log")],
                os.path.join(directory, "nginx.log"), death_signal=signal.SIGTERM,
                env={**os.environ, "NGINX": f"{listener.fileno()};"}, pass_fds=[listener.fileno()])
        eventually("nginx's pid file", self._has_started)

    def _has_started(self):
        if self.child.poll() is not None:
            raise AssertionError(f"nginx ended with {self.child.returncode}:\n{self.log()}")
        return os.path.exists(os.path.join(self.directory, "pid"))

    def _config(self, locations):
        temporary = "".join(
            f"  {kind}_temp_path {self.directory}/{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;\n" if os.geteuid() == 0 else ""
        return (f"{user}daemon off;\nworker_processes 1;\npid {self.directory}/pid;\n"
                "events { worker_connections 1024; }\n"
                "http {\n"
                "  log_format plain '$request_method $request_uri $status $request_length';\n"
                f"  access_log {self.access_log} plain;\n{temporary}"
                "  client_max_body_size 1g;\n  sendfile on;\n  types { }\n"
                "  default_type application/octet-stream;\n"
                "  server {\n"
                f"    listen 127.0.0.1:{self.port};\n    root {self.www};\n"
                f"{locations.replace('$SELF', f'127.0.0.1:{self.port}')}\n  }}\n}}\n")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def put(self, path, content):
        full = os.path.join(self.www, path.lstrip("/"))
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as out:
            out.write(content)

    def requests(self):
        """'METHOD TARGET STATUS REQUEST_LENGTH' of each request that it answered."""
        with open(self.access_log, encoding="utf-8") as log:
            return log.read().splitlines()

    def kill(self):
        """A killed master would leave its worker behind; SIGTERM is nginx's fast end."""
        if self.child.poll() is None:
            self.child.terminate()
            self.child.wait(10)


class LoadOrigin(Process):
    """secondsight-load origin: /o/KEY/SIZE has SIZE bytes that are a function of KEY and SIZE."""

    def __init__(self, log_path):
        super().__init__([built("secondsight-load"), "origin"], log_path)
        line = eventually("the origin's address",
                          lambda: [x for x in self.log().splitlines(True) if x.endswith("\n")])
        self.url = line[0].split()[1].rstrip("/")
        self.port = int(self.url.rsplit(":", 1)[1])
