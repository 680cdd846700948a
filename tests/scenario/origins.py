"""An origin that answers with exactly the bytes that a scenario wants, wrong ones included."""

import socket
import threading


class ScriptedOrigin:
    """Answers requests by `script(target)`: bytes to send (or an iterator of them), then the connection
    ends; None: silence.

    Keeps the heads of all requests. Bodies of requests are not read.
    """

    def __init__(self, script):
        self.script = script
        self.heads = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._silent = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self):
        return self._listener.getsockname()[1]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        head = b""
        try:
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65536)
                if not piece:
                    return connection.close()
                head += piece
            self.heads.append(head.split(b"\r\n\r\n", 1)[0].decode("latin-1"))
            answer = self.script(self.heads[-1].split()[1])
            if answer is None:
                self._silent.append(connection)
                return None
            for piece in [answer] if isinstance(answer, bytes) else answer:
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):  # an early close could cut what was sent
                pass
        except OSError:
            pass
        return connection.close()

    def close(self):
        self._listener.close()
        for connection in self._silent:
            connection.close()
