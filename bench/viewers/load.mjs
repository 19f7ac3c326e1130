// usage: node load.mjs ENGINES TRACE
// Loads TRACE into Perfetto's trace processor, and prints what that took as one JSON object. The
// file is read in small parts, so that what is not the engine takes little memory. The engine is
// compiled as in a browser: the functions that run often by the optimizing compiler. For
// bench/viewers/run.py.
import fs from 'node:fs';
import { Perfetto } from '../../tests/viewers/perfetto.mjs';

const PART = 1 << 20;

function* parts(path) {
  const file = fs.openSync(path), part = Buffer.alloc(PART);
  for (let count; (count = fs.readSync(file, part)) > 0;) yield part.subarray(0, count);
  fs.closeSync(file);
}

const [engines, trace] = process.argv.slice(2);
const engine = new Perfetto(engines), before = process.cpuUsage(), begun = performance.now();
const report = { error: null };
try {
  for (const part of parts(trace)) engine.append(part);
  engine.finish();
} catch (error) {
  report.error = error.message;
}
const seconds = (performance.now() - begun) / 1e3, { user, system } = process.cpuUsage(before);
Object.assign(report, { seconds, processor_seconds: (user + system) / 1e6,
                        engine_bytes: engine.memory.buffer.byteLength,
                        peak_kib: process.resourceUsage().maxRSS });
if (!report.error) {
  report.health = engine.health();
  [[report.slices]] = engine.query("select count(*) from slice where category = 'operator'");
}
console.log(JSON.stringify(report));
