"""Reads the slices of a Perfetto trace as prof writes it."""

import collections
import gzip

Slice = collections.namedtuple("Slice", "process pid name start_ns duration_ns")


def fields_of(data):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 1:
            at += 8
            yield key >> 3, data[at - 8 : at]
        else:
            size = varint()
            at += size
            yield key >> 3, data[at - size : at]


def message(data):
    """The last value of each field."""
    return dict(fields_of(data))


class Decoder:
    def __init__(self, data):
        self.tracks, self.slices, self.pids = {}, [], {}
        self.sequences = collections.defaultdict(lambda: {"names": {}, "now": 0, "track": 0})
        self.open = collections.defaultdict(list)
        for _, packet in fields_of(data):
            self.take(message(packet))
        assert not any(self.open.values()), "slices without an end"

    def take(self, packet):
        state = self.sequences[packet[10]]
        if packet.get(13):
            state["names"] = {}
        if 59 in packet and 11 in message(packet[59]):
            state["track"] = message(message(packet[59])[11])[11]
        if 6 in packet:
            clocks = [message(c) for f, c in fields_of(packet[6]) if f == 1]
            state["now"] = {c[1]: c.get(2, 0) for c in clocks}[1]
        for field, value in fields_of(packet.get(12, b"")):
            if field == 2:
                state["names"][message(value)[1]] = message(value)[2].decode()
        if 60 in packet:
            track = message(packet[60])
            assert track[1] not in self.tracks, "a track comes twice"
            self.tracks[track[1]] = track
            if 3 in track:
                process = message(track[3])
                name = process.get(6, b"").decode()
                assert process[1] not in self.pids, "two processes have one number"
                self.pids[process[1]] = name
        if 11 in packet:
            self.take_event(packet, state)

    def take_event(self, packet, state):
        event = message(packet[11])
        track = event.get(11, state["track"])
        if packet.get(58, 64 if state["track"] else 1) == 1:
            now = packet[8]
        else:
            state["now"] += packet[8]
            now = state["now"]
        if event[9] == 1:
            name = state["names"][event[10]] if 10 in event else event[23].decode()
            self.open[track].append((name, now))
        elif event[9] == 2:
            name, start = self.open[track].pop()
            self.slices.append(Slice(*self.process(track), name, start, now - start))

    def process(self, uuid):
        track = self.tracks[uuid]
        while 5 in track:
            track = self.tracks[track[5]]
        pid = message(track[3])[1] if 3 in track else 0
        return (self.pids[pid] if pid else track[2].decode()), pid


def decode(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        return Decoder(f.read())
