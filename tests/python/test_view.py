"""prof view: what its server sends, which requests it refuses, and what it leaves."""

import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
from urllib.parse import urlsplit

from hang_guard import HANG_SECONDS

COMMAND = os.path.abspath(os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", "build/dev"), "prof"))
EVENTS = [
    {"ph": "X", "pid": 1, "tid": 1, "name": f"scope {i}", "cat": "cpu_op", "ts": 10 * i, "dur": 5}
    for i in range(1000)
]
HOSTILE = "a<script><!--<b>'\"&\n\u2028\U0001f600.prof"


@unittest.skipUnless(os.path.exists(COMMAND), "the prof command is not built")
class View(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.json = cls.path("events.json")
        with open(cls.json, "w") as f:
            json.dump({"traceEvents": EVENTS}, f)
        cls.run_prof("import", cls.json, "-o", cls.path("trace.prof"))
        cls.run_prof("dump", cls.path("trace.prof"), "-o", cls.path("trace.pftrace"))
        with open(cls.path("trace.pftrace"), "rb") as f:
            cls.wanted = f.read()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def run_prof(cls, *words):
        subprocess.run([COMMAND, *words], check=True, capture_output=True, timeout=HANG_SECONDS)

    def view(self, *words, **environment):
        """Starts the command, and reads its address."""
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in ("SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY")
        }
        command = subprocess.Popen(
            [COMMAND, "view", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**variables, **environment},
            cwd=self.folder,
        )
        self.addCleanup(command.stdout.close)
        self.addCleanup(command.stderr.close)
        self.addCleanup(command.wait)
        self.addCleanup(command.kill)
        address = urlsplit(command.stdout.readline().strip())
        self.assertEqual(address.hostname, "127.0.0.1")
        self.assertRegex(address.path, r"^/[0-9a-f]{32}/$")
        return command, address

    def ask(self, address, path, method="GET", headers=None):
        """Status, headers and body. A header of None is not sent."""
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=HANG_SECONDS)
        connection.putrequest(method, path, skip_host=True)
        for name, value in {"Host": address.netloc, **(headers or {})}.items():
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    connection.putheader(name, one)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, answer.headers, body

    def policy(self, headers):
        """Each directive's values."""
        parts = (part.split() for part in headers["Content-Security-Policy"].split(";"))
        return {words[0]: words[1:] for words in parts}

    def expected_policy(self, nonce):
        none = ["'none'"]
        return {
            "default-src": none,
            "script-src": [f"'nonce-{nonce}'"],
            "style-src": [f"'nonce-{nonce}'"],
            "connect-src": ["'self'"],
            "base-uri": none,
            "form-action": none,
            "frame-ancestors": none,
        }

    def end(self, command, status=0):
        self.assertEqual(command.wait(HANG_SECONDS), status)
        return command.stderr.read()

    def test_the_trace_is_what_dump_writes_and_the_command_ends(self):
        command, address = self.view("trace.prof")
        status, headers, page = self.ask(address, address.path)
        self.assertEqual(status, 200)
        self.assertIn(b'fileName = "trace.prof.pftrace"', page)
        self.assertIn(b'ui = "https://ui.perfetto.dev"', page)
        for source in re.findall(rb"(?:src|href)=", page):
            self.fail(f"the page refers to something: {source}")
        self.assertEqual(headers["Referrer-Policy"], "no-referrer")
        self.assertEqual(headers["Cache-Control"], "no-store")
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(headers["Cross-Origin-Resource-Policy"], "same-origin")
        nonce = re.search(rb'<script nonce="([^"]+)"', page).group(1).decode()
        self.assertEqual(self.policy(headers), self.expected_policy(nonce))
        self.assertNotIn("Access-Control-Allow-Origin", headers)
        status, headers, body = self.ask(address, address.path + "trace")
        self.assertEqual((status, body), (200, self.wanted))
        said = self.end(command)
        self.assertIn(f"the browser has the trace, {len(self.wanted)} bytes", said)
        self.assertIn("comes from the network (https://ui.perfetto.dev)", said)
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", address.port), HANG_SECONDS).close()

    def test_a_request_without_the_token_gets_nothing(self):
        command, address = self.view("trace.prof")
        wrong = "/" + "0" * 32 + "/"
        for path in ("/", "/trace", wrong, wrong + "trace", address.path[:-1], "/favicon.ico"):
            status, _, body = self.ask(address, path)
            self.assertEqual((status, body), (404, b"404 Not Found"), path)
        token = address.path.strip("/")
        for digit in "0123456789abcdef":
            for near in (digit + token[1:], token[:-1] + digit):
                status = 200 if near == token else 404
                self.assertEqual(self.ask(address, f"/{near}/")[0], status, near)
        for path in (address.path + "../trace", address.path + "trace?x", address.path + "x"):
            self.assertEqual(self.ask(address, path)[0], 404, path)
        self.assertIsNone(command.poll())

    def test_only_the_address_of_this_machine_is_served(self):
        """A server of all addresses would be at this one, too."""
        command, address = self.view("trace.prof")
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.2", address.port), HANG_SECONDS).close()
        self.assertIsNone(command.poll())

    def test_a_host_of_another_name_is_refused(self):
        command, address = self.view("trace.prof")
        good = [address.netloc, f"localhost:{address.port}", "localhost", "LOCALHOST:9"]
        bad = ["evil.example", f"evil.example:{address.port}", "127.0.0.1.evil.example"]
        bad += ["localhost.evil.example", "127.0.0.1:1@evil.example", "localhost:x", "0.0.0.0"]
        for host in good:
            self.assertEqual(self.ask(address, address.path, headers={"Host": host})[0], 200, host)
        for host in bad:
            status, _, body = self.ask(address, address.path + "trace", headers={"Host": host})
            self.assertEqual((status, body), (403, b"403 Forbidden"), host)
        for host in (None, [address.netloc, "evil.example"], [address.netloc] * 2):
            status = self.ask(address, address.path + "trace", headers={"Host": host})[0]
            self.assertEqual(status, 400, host)
        self.assertIsNone(command.poll())

    def test_other_methods_and_broken_requests_are_refused(self):
        command, address = self.view("trace.prof")
        for method in ("POST", "PUT", "OPTIONS", "DELETE", "get"):
            self.assertEqual(self.ask(address, address.path + "trace", method)[0], 405, method)
        for request in (
            b"\r\n\r\n",
            b"GET\r\nHost: localhost\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: local\0host\r\n\r\n",
            b"GET /" + b"x" * 8192,
        ):
            with socket.create_connection(("127.0.0.1", address.port), HANG_SECONDS) as s:
                s.sendall(request)
                self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 400 "), request[:40])
        self.assertIsNone(command.poll())

    def test_idle_connections_hold_nobody_up(self):
        command, address = self.view("trace.prof")
        idle = [
            socket.create_connection(("127.0.0.1", address.port), HANG_SECONDS) for _ in range(40)
        ]
        for s in idle:
            self.addCleanup(s.close)
        idle[-1].sendall(b"GET /")
        self.assertEqual(self.ask(address, address.path + "trace")[2], self.wanted)
        self.end(command)

    def test_a_download_that_was_broken_off_can_be_repeated(self):
        large = bytes(32 << 20)  # more than a connection buffers
        with open(self.path("large.json"), "wb") as f:
            f.write(large)
        command, address = self.view("large.json")
        with socket.create_connection(("127.0.0.1", address.port), HANG_SECONDS) as s:
            s.sendall(f"GET {address.path}trace HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            self.assertTrue(s.recv(15).startswith(b"HTTP/1.1 200"))
        self.assertTrue(self.ask(address, address.path + "trace")[2] == large)
        said = self.end(command)
        self.assertIn("broke the download off", said)
        self.assertIn(f"the browser has the trace, {len(large)} bytes", said)

    def test_a_trace_that_cannot_be_written_is_cut_and_the_command_fails(self):
        for name in ("here.prof", "gone.prof"):
            shutil.copy(self.path("trace.prof"), self.path(name))
        command, address = self.view("here.prof", "gone.prof")
        os.remove(self.path("gone.prof"))
        with self.assertRaises(http.client.IncompleteRead):
            self.ask(address, address.path + "trace")
        said = self.end(command, 1)
        self.assertIn("gone.prof", said)
        self.assertNotIn("the browser has the trace", said)

    def test_a_file_for_viewers_is_sent_as_it_is(self):
        command, address = self.view("events.json")
        self.assertIn(b'fileName = "events.json"', self.ask(address, address.path)[2])
        with open(self.json, "rb") as f:
            self.assertEqual(self.ask(address, address.path + "trace")[2], f.read())
        self.end(command)

    def test_several_captures_are_sent_as_prof_merge_writes_them(self):
        os.makedirs(self.path("ranks/rank-1"))
        for name in ("ranks/0.prof", "ranks/rank-1/1.prof"):
            shutil.copy(self.path("trace.prof"), self.path(name))
        self.run_prof("merge", "-o", self.path("all.pftrace"), self.path("ranks"))
        with open(self.path("all.pftrace"), "rb") as f:
            wanted = f.read()
        self.assertGreater(len(wanted), 1.9 * len(self.wanted))
        for words, name in (
            (["ranks/"], b'"ranks.pftrace"'),
            (["ranks/0.prof", "ranks/rank-1/1.prof"], b'"0.prof and 1 more.pftrace"'),
        ):
            command, address = self.view(*words)
            self.assertIn(b"fileName = " + name, self.ask(address, address.path)[2])
            self.assertEqual(self.ask(address, address.path + "trace")[2], wanted)
            self.assertIn("2 captures of", self.end(command))

    def test_over_ssh_it_prints_the_tunnel_and_compresses(self):
        with open(self.path("xdg-open"), "w") as f:
            f.write(f"#!/bin/sh\ntouch {self.path('was-opened')}\n")
        os.chmod(self.path("xdg-open"), 0o755)
        command, address = self.view(
            "trace.prof",
            SSH_CONNECTION="10.0.0.9 50000 192.0.2.7 2222",
            USER="ada",
            DISPLAY=":0",
            PATH=self.folder + ":" + os.environ["PATH"],
        )
        self.assertIn(b'fileName = "trace.prof.pftrace.gz"', self.ask(address, address.path)[2])
        body = self.ask(address, address.path + "trace")[2]
        self.assertEqual(gzip.decompress(body), self.wanted)
        line = f"ssh -N -p 2222 -L {address.port}:127.0.0.1:{address.port} ada@192.0.2.7\n"
        self.assertIn(line, self.end(command))
        self.assertFalse(os.path.exists(self.path("was-opened")))

    def test_a_hostile_variable_is_no_command(self):
        command, address = self.view("trace.prof", SSH_CONNECTION="a 1 $(touch\x1bx) 22", USER="a")
        self.ask(address, address.path + "trace")
        said = self.end(command)
        self.assertIn(f"-L {address.port}:127.0.0.1:{address.port} a@HOST\n", said)

    def test_with_a_display_the_browser_gets_the_address(self):
        os.mkfifo(self.path("opened"))
        os.makedirs(self.path("bin"))
        with open(self.path("bin/xdg-open"), "w") as f:
            f.write(f'#!/bin/sh\necho noise\nprintf %s "$1" > {self.path("opened")}\n')
        os.chmod(self.path("bin/xdg-open"), 0o755)
        path = self.path("bin") + ":" + os.environ["PATH"]
        command, address = self.view("trace.prof", DISPLAY=":0", PATH=path)
        with open(self.path("opened")) as f:
            self.assertEqual(f.read(), address.geturl())
        self.ask(address, address.path + "trace")
        self.assertNotIn("noise", self.end(command))
        self.assertEqual(command.stdout.read(), "")

    def test_a_hostile_file_name_stays_text(self):
        os.symlink("trace.prof", self.path(HOSTILE))
        command, address = self.view(HOSTILE)
        page = self.ask(address, address.path)[2].decode()
        self.assertEqual(page.count("<script"), 1)
        self.assertNotIn("<!--", page)
        name = re.search(r'fileName = ("[^"]*");', page).group(1)
        self.assertEqual(json.loads(name), HOSTILE + ".pftrace")
        self.assertIsNone(command.poll())

    def test_an_interrupt_leaves_no_file(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(self.path("trace.prof"), os.path.join(folder, "trace.prof"))
            command, address = self.view(os.path.join(folder, "trace.prof"), TMPDIR=folder)
            self.ask(address, address.path)
            command.send_signal(signal.SIGINT)
            self.end(command, -signal.SIGINT)
            self.assertEqual(os.listdir(folder), ["trace.prof"])

    def test_wrong_words_are_refused(self):
        for words, text in (
            ([], "takes captures, or a folder"),
            (["--ui", "javascript:alert(1)", "trace.prof"], "--ui takes an address"),
            (["--ui", "https://", "trace.prof"], "--ui takes an address"),
            (["--ui", "https://a b", "trace.prof"], "--ui takes an address"),
        ):
            done = subprocess.run(
                [COMMAND, "view", *words],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                cwd=self.folder,
            )
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(text, done.stderr)

    def test_what_is_no_capture_is_refused_before_anything_is_served(self):
        for name, text in (("none.prof", "none.prof"), ("none.json", "none.json"), ("d.json", "d")):
            os.makedirs(self.path("d.json"), exist_ok=True)
            done = subprocess.run(
                [COMMAND, "view", name],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                cwd=self.folder,
            )
            self.assertEqual((done.returncode, done.stdout), (1, ""), name)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
