#!/usr/bin/env node
// usage: node catapult.mjs ENGINES TRACE
// Loads TRACE into catapult's importer, the code behind chrome://tracing, in plain Node. ENGINES is the folder that
// fetch-engines.sh prints. Prints one JSON object: `error` (null, or why the trace was refused), `warnings` (the importer's; empty
// is good), `slices`, `instants`, `counters`, `series` (of each counter: its name, times and values in the order in which they are
// drawn), `flows`, `threads` (name and slices of each), `metadata` (names of the top-level keys that it shows). Exit status: 0 loaded
// without a warning, 1 not, 2 wrong use.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import zlib from 'node:zlib';

// A thing that can be called, constructed, read and written without end: what catapult's user interface takes for a browser's
// objects while it is only being defined.
function dummy() {
  const kept = {};
  const self = new Proxy(function () {}, {
    get(target, key) {
      if (key === Symbol.toPrimitive) return () => '';
      if (key === Symbol.iterator) return function* () {};
      if (key === 'length') return 0;
      if (key === 'prototype') return target.prototype;
      if (key === 'then') return undefined;
      return typeof key === 'string' && !(key in kept) ? self : kept[key];
    },
    set(_target, key, value) { kept[key] = value; return true; },
    apply: () => self,
    construct: () => self,
  });
  return self;
}

// The globals of a browser that has no page. `isVinn` is catapult's own word for "runs without a DOM".
function browserGlobals() {
  const elements = ['HTMLElement', 'HTMLUnknownElement', 'HTMLDivElement', 'HTMLSpanElement', 'HTMLCanvasElement', 'Element', 'Node',
                    'Blob', 'FileReader', 'XMLHttpRequest', 'Image', 'MutationObserver'];
  class Event { constructor(type) { this.type = type; } }
  const globals = {
    console, setTimeout, clearTimeout, performance, TextDecoder, TextEncoder, URL, Event, CustomEvent: class extends Event {},
    isVinn: true, Polymer: dummy(), document: dummy(), customElements: dummy(), CSS: {}, localStorage: {},
    navigator: { userAgent: 'node', platform: '' }, location: { search: '', hash: '' },
    requestAnimationFrame: task => setTimeout(task, 0), getComputedStyle: dummy(),
    addEventListener() {}, removeEventListener() {}, dispatchEvent: () => true,
    ...Object.fromEntries(elements.map(name => [name, class {}])),
  };
  return Object.assign(globals, { self: globals, window: globals, global: globals, globalThis: globals });
}

// The viewer is one script made of many modules, each of which opens with 'use strict'. What comes before the module that defines
// tr.isVinn is foreign UI code; of the rest, modules that need a page fail, and the importer needs none of them.
function loadCatapult(engines) {
  const file = path.join(engines, 'assets', 'catapult_trace_viewer.js');
  const script = fs.readFileSync(file, 'utf8');
  const mark = script.lastIndexOf("'use strict';", script.indexOf('tr.isVinn'));
  if (mark < 0) throw new Error(`${file} is not the viewer this was written for`);
  const context = vm.createContext(browserGlobals());
  for (const module of script.slice(mark).split(/(?='use strict';)/)) {
    try { vm.runInContext(module, context); } catch { /* needs a page */ }
  }
  if (!context.tr?.Model || !context.tr.importer?.Import) throw new Error(`${file} did not define its importer`);
  return context.tr;
}

// As the browser reads a file: one gzip member, strict UTF-8.
function readText(trace) {
  const bytes = fs.readFileSync(trace);
  const plain = bytes[0] === 0x1f && bytes[1] === 0x8b ? zlib.gunzipSync(bytes) : bytes;
  return new TextDecoder('utf-8', { fatal: true }).decode(plain);
}

function describe(model) {
  const report = { slices: 0, instants: model.instantEvents.length, counters: 0, series: [],
                   flows: model.flowEvents.length, threads: [],
                   metadata: model.metadata.map(entry => entry.name),
                   warnings: model.importWarnings.map(warning => `${warning.type}: ${warning.message}`) };
  for (const process of model.getAllProcesses()) {
    report.instants += process.instantEvents.length;
    report.counters += Object.keys(process.counters).length;
    for (const counter of Object.values(process.counters))
      for (const series of counter.series)
        report.series.push({ counter: counter.name, name: series.name, times: series.timestamps,
                             values: series.samples.map(sample => sample.value) });
    for (const thread of Object.values(process.threads)) {
      const slices = thread.sliceGroup.slices.length;
      report.slices += slices;
      report.threads.push({ process: process.name ?? String(process.pid), thread: thread.name ?? String(thread.tid), slices });
    }
  }
  return report;
}

const [engines, trace] = process.argv.slice(2);
if (!trace) {
  console.error('usage: catapult.mjs ENGINES TRACE');
  process.exit(2);
}
const tr = loadCatapult(engines);
let report = { error: null, warnings: [] };
try {
  const model = new tr.Model();
  new tr.importer.Import(model).importTraces([readText(trace)]);
  report = { ...report, ...describe(model) };
} catch (error) {
  report.error = String(error?.message ?? error).slice(0, 500);
}
console.log(JSON.stringify(report));
process.exitCode = report.error || report.warnings.length ? 1 : 0;
