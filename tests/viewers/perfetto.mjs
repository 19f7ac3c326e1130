#!/usr/bin/env node
// usage: node perfetto.mjs ENGINES TRACE [SQL...]
// Loads TRACE into Perfetto's trace processor, the WebAssembly module that ui.perfetto.dev runs, in plain Node: no browser, no
// packages. ENGINES is the folder that fetch-engines.sh prints. Prints one JSON object: `error` (null, or why the trace was
// refused), `health` (what was refused or lost in silence: [name, value, severity]; empty is good), `results` (rows of each SQL).
// Exit status: 0 loaded and healthy, 1 not, 2 wrong use.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import v8 from 'node:v8';

// ---- protobuf, as much of it as the module's RPC needs ----

class Reader {
  constructor(bytes) { this.bytes = bytes; this.at = 0; }
  get isDone() { return this.at >= this.bytes.length; }
  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) throw new Error('protobuf: cut off');
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  slice(count) {
    if (this.at + count > this.bytes.length) throw new Error('protobuf: cut off');
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }
  field() {
    const key = Number(this.varint());
    const wire = key & 7;
    switch (wire) {
      case 0: return [key >> 3, this.varint()];
      case 1: return [key >> 3, this.slice(8)];
      case 2: return [key >> 3, this.slice(Number(this.varint()))];
      case 5: return [key >> 3, this.slice(4)];
      default: throw new Error(`protobuf: wire type ${wire}`);
    }
  }
}

// All values of field `number` in a message.
function values(message, number) {
  const found = [];
  for (const reader = new Reader(message); !reader.isDone;) {
    const [field, value] = reader.field();
    if (field === number) found.push(value);
  }
  return found;
}

const text = bytes => Buffer.from(bytes).toString('utf8');

function varintBytes(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 0x80n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
}
const numberField = (field, value) => Buffer.concat([varintBytes(field << 3), varintBytes(value)]);
const bytesField = (field, bytes) => Buffer.concat([varintBytes(field << 3 | 2), varintBytes(bytes.length), bytes]);

// ---- the module's host ----

const NOT_IMPLEMENTED = -52, NO_SUCH_FILE = -44, BAD_DESCRIPTOR = 8, PAGE = 65536, MEMORY_MAX = 0xffff0000;

// What the module asks of its surroundings; what is not here answers "not implemented". It has no files.
function hostFunctions(module) {
  const view = () => new DataView(module.memory.buffer);
  const bytes = () => new Uint8Array(module.memory.buffer);
  const cString = at => { const all = bytes(); return text(all.subarray(at, all.indexOf(0, at))); };
  const noFile = () => NO_SUCH_FILE;
  const brokenDownTime = (seconds, to) => {
    const date = new Date(Number(seconds) * 1000);
    const dayOfYear = Math.floor((Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()) -
                                  Date.UTC(date.getUTCFullYear(), 0, 1)) / 864e5);
    [date.getUTCSeconds(), date.getUTCMinutes(), date.getUTCHours(), date.getUTCDate(), date.getUTCMonth(),
     date.getUTCFullYear() - 1900, date.getUTCDay(), dayOfYear, 0, 0].forEach((part, i) => view().setInt32(to + 4 * i, part, true));
  };
  return {
    emscripten_get_now: () => performance.now(),
    emscripten_date_now: () => Date.now(),
    clock_time_get: (_clock, _precision, to) => { view().setBigUint64(to, process.hrtime.bigint(), true); return 0; },
    emscripten_get_heap_max: () => MEMORY_MAX,
    emscripten_resize_heap: wanted => {
      const missing = (wanted >>> 0) - module.memory.buffer.byteLength;
      if ((wanted >>> 0) > MEMORY_MAX) return 0;
      try { module.memory.grow(Math.ceil(missing / PAGE)); return 1; } catch { return 0; }
    },
    fd_write: (_fd, pieces, count, writtenOut) => {
      let written = 0;
      for (let i = 0; i < count; i++) {
        const at = view().getUint32(pieces + 8 * i, true), length = view().getUint32(pieces + 8 * i + 4, true);
        module.log += text(bytes().subarray(at, at + length));
        written += length;
      }
      view().setUint32(writtenOut, written, true);
      return 0;
    },
    fd_close: () => 0, fd_sync: () => 0, fd_fdstat_get: () => BAD_DESCRIPTOR, fd_read: () => BAD_DESCRIPTOR,
    fd_seek: () => BAD_DESCRIPTOR,
    environ_get: () => 0,
    environ_sizes_get: (countOut, bytesOut) => { view().setUint32(countOut, 0, true); view().setUint32(bytesOut, 0, true); return 0; },
    emscripten_err: at => { module.log += cString(at) + '\n'; },
    _abort_js: () => { throw new Error('the trace processor aborted: ' + module.log.slice(-500)); },
    __assert_fail: (what, file, line) => { throw new Error(`assertion ${cString(what)} at ${cString(file)}:${line}`); },
    _tzset_js: () => {}, _gmtime_js: brokenDownTime, _localtime_js: brokenDownTime,
    __syscall_getcwd: to => { bytes().set([0x2f, 0], to); return 2; },
    __syscall_stat64: noFile, __syscall_lstat64: noFile, __syscall_newfstatat: noFile, __syscall_openat: noFile,
    __syscall_faccessat: noFile, __syscall_readlinkat: noFile,
  };
}

// A JavaScript function (pointer, length) as one that WebAssembly can call through its table: a module that imports and exports it.
function asTableEntry(callback) {
  const relay = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, // magic, version
    1, 6, 1, 0x60, 2, 0x7f, 0x7f, 0,                             // type 0: (i32, i32) -> ()
    2, 7, 1, 1, 0x68, 1, 0x66, 0, 0,                             // import h.f as function 0 of type 0
    7, 5, 1, 1, 0x66, 0, 0]);                                    // export function 0 as f
  return new WebAssembly.Instance(new WebAssembly.Module(relay), { h: { f: callback } }).exports.f;
}

// ---- the RPC: requests and answers are TraceProcessorRpcStream messages of perfetto's trace_processor.proto ----

const METHOD = { append: 1, finalize: 2, query: 3 };
const FIELD = { message: 1, sequence: 1, request: 2, fatal: 5, appendData: 101, queryArgs: 103, appendResult: 201, queryResult: 203,
                finalizeResult: 212 };
const WINDOW = 32 << 20;

export class Perfetto {
  constructor(engines) {
    this.log = '';
    this.sequence = 0;
    this.answers = [];
    const module = new WebAssembly.Module(fs.readFileSync(path.join(engines, 'trace_processor.wasm')));
    const host = hostFunctions(this);
    const imports = {};
    for (const { module: space, name } of WebAssembly.Module.imports(module))
      (imports[space] ??= {})[name] = host[name] ?? (() => NOT_IMPLEMENTED);
    const exports = new WebAssembly.Instance(module, imports).exports;
    this.memory = exports.memory;
    exports.emscripten_stack_init?.();
    exports.__wasm_call_ctors?.();
    exports.__main_argc_argv?.(0, 0);
    const answer = (at, length) => this.answers.push(new Uint8Array(this.memory.buffer).slice(at >>> 0, (at >>> 0) + length));
    const table = exports.__indirect_function_table, slot = table.grow(1);
    table.set(slot, asTableEntry(answer));
    this.window = exports.trace_processor_rpc_init(slot, WINDOW) >>> 0;
    this.send = exports.trace_processor_on_rpc_request;
  }

  // Sends a request, returns the messages of its answers.
  call(method, ...parts) {
    const request = bytesField(FIELD.message, Buffer.concat([numberField(FIELD.sequence, this.sequence++),
                                                            numberField(FIELD.request, method), ...parts]));
    this.answers = [];
    for (let at = 0; at < request.length; at += WINDOW) {
      const part = request.subarray(at, at + WINDOW);
      new Uint8Array(this.memory.buffer).set(part, this.window);
      this.send(part.length);
    }
    const messages = values(Buffer.concat(this.answers), FIELD.message);
    for (const message of messages)
      for (const fatal of values(message, FIELD.fatal)) throw new Error('fatal: ' + text(fatal));
    return messages;
  }

  // Throws what the importer says when it refuses the trace.
  check(messages, field, errorField) {
    for (const message of messages)
      for (const result of values(message, field))
        for (const error of values(result, errorField)) throw new Error(text(error));
  }

  // The next part of a trace, of less than WINDOW bytes.
  append(part) { this.check(this.call(METHOD.append, bytesField(FIELD.appendData, part)), FIELD.appendResult, 2); }
  finish() { this.check(this.call(METHOD.finalize), FIELD.finalizeResult, 1); }

  load(trace) {
    const part = WINDOW - 1024;
    for (let at = 0; at < trace.length; at += part) this.append(trace.subarray(at, at + part));
    this.finish();
  }

  // Rows of the query, each an array; integers past 2^53 as text.
  query(sql) {
    const columns = [], cells = [];
    for (const message of this.call(METHOD.query, bytesField(FIELD.queryArgs, bytesField(1, Buffer.from(sql)))))
      for (const result of values(message, FIELD.queryResult)) {
        columns.push(...values(result, 1).map(text));
        for (const error of values(result, 2)) throw new Error(`${text(error)} in: ${sql}`);
        for (const batch of values(result, 3)) cells.push(...batchCells(batch));
      }
    const rows = [];
    for (let at = 0; at < cells.length; at += columns.length) rows.push(cells.slice(at, at + columns.length));
    return rows;
  }

  health() { return this.query("select name, value, severity from stats where value != 0 and severity != 'info'"); }
}

// A batch has the cells' types in order, and their values apart, by type.
function batchCells(batch) {
  const types = values(batch, 1).flatMap(bytes => [...bytes]);
  const integers = values(batch, 2).flatMap(bytes => {
    const all = [];
    for (const reader = new Reader(bytes); !reader.isDone;) all.push(reader.varint());
    return all;
  });
  const doubles = values(batch, 3).flatMap(bytes =>
    Array.from({ length: bytes.length / 8 }, (_, i) => Buffer.from(bytes).readDoubleLE(8 * i)));
  const blobs = values(batch, 4);
  const strings = values(batch, 5).flatMap(bytes => text(bytes).split('\0'));
  let nextInteger = 0, nextDouble = 0, nextString = 0, nextBlob = 0;
  return types.map(type => {
    switch (type) {
      case 1: return null;
      case 2: {
        const value = BigInt.asIntN(64, integers[nextInteger++]);
        return value <= 2n ** 53n && value >= -(2n ** 53n) ? Number(value) : value.toString();
      }
      case 3: return doubles[nextDouble++];
      case 4: return strings[nextString++];
      case 5: return Buffer.from(blobs[nextBlob++]).toString('hex');
      default: throw new Error(`a cell of type ${type}`);
    }
  });
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [engines, trace, ...queries] = process.argv.slice(2);
  if (!trace) {
    console.error('usage: perfetto.mjs ENGINES TRACE [SQL...]');
    process.exit(2);
  }
  // The optimizing compiler takes longer than it saves, also for a trace of 300 000 slices.
  v8.setFlagsFromString('--liftoff-only');
  const report = { error: null, health: [], results: [] };
  const engine = new Perfetto(engines);
  try {
    engine.load(fs.readFileSync(trace));
    report.health = engine.health();
    report.results = queries.map(sql => engine.query(sql));
  } catch (error) {
    report.error = error.message;
  }
  console.log(JSON.stringify(report));
  process.exitCode = report.error || report.health.length ? 1 : 0;
}
