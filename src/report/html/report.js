"use strict";
(function () {
  const $ = (id) => document.getElementById(id), root = document.documentElement;
  const nameColours = new Map(), pending = new Map();
  let data, colours, query = "", chosenRow, isPrinting = false, drawn = 0, found = null, hits;
  // A name matches the search, or there is none.
  const matches = (name) => query === "" || name.toLowerCase().includes(query);

  // ---- text ----
  const thousands = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  function scaled(value, units, digits, rest, isPadded) {
    const [size, unit] = units.find(([least]) => Math.abs(value) >= least) || [];
    const text = (value / size).toPrecision(digits);
    return size ? (isPadded ? text : Number(text)) + " " + unit : rest;
  }
  const timeText = (ns, digits = 5, isPadded = false) => scaled(ns, [[1e9, "s"], [1e6, "ms"],
    [1e3, "\u00b5s"]], digits, Math.round(ns) + " ns", isPadded);
  const bytesText = (bytes) => scaled(bytes, [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"],
    [2 ** 10, "KiB"]], 4, bytes + " B");
  const shareText = (part, all) => (all > 0 ? (100 * part / all).toFixed(2) + " %" : "");
  // Controls and marks that turn the direction of text are spelt out.
  const shown = (text) => text.replace(
    /[\0-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")) || "(no name)";
  function element(tag, parent, text, name) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    if (parent) parent.append(made);
    return made;
  }

  // ---- the data ----
  async function readBytes() {
    const text = atob($("data").textContent), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    if ($("data").dataset.encoding !== "gzip") return bytes;
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }
  function readColumn(from, count) {
    const to = new Float64Array(count), bytes = from.bytes;
    let at = from.at;
    for (let i = 0; i < count; i++) {
      let value = 0, scale = 1, byte;
      do {
        byte = bytes[at++];
        value += (byte & 127) * scale;
        scale *= 128;
      } while (byte > 127);
      to[i] = value % 2 ? -(value + 1) / 2 : value / 2;
    }
    from.at = at;
    return to;
  }
  // Rows of slices: one for each thread, lane and depth. Times ascend.
  function readRows(from) {
    const count = data.tracks.reduce((sum, track) => sum + track[2], 0), grid = 2 ** data.shift;
    const [starts, lengths, depths, names, counts] = [0, 1, 2, 3, 4].map(
      () => readColumn(from, count));
    let at = 0;
    for (const [thread, lane, size] of data.tracks) {
      const rows = [];
      let start = 0, depth = 0;
      for (let i = at; i < at + size; i++) {
        start = i === at ? starts[i] : start - starts[i];
        depth += depths[i];
        starts[i] = start;
        depths[i] = depth;
        (rows[depth] ||= []).push(i);
      }
      rows.forEach((items, level) => {
        items.reverse();
        lineRows.push({
          thread, lane, level, starts: Float64Array.from(items, (i) => starts[i] * grid),
          ends: Float64Array.from(items, (i) => (starts[i] + lengths[i]) * grid),
          names: Uint32Array.from(items, (i) => names[i]),
          counts: Float64Array.from(items, (i) => counts[i])
        });
      });
      at += size;
    }
  }

  // ---- canvases ----
  function readColours() {
    const style = getComputedStyle(root);
    colours = { isDark: matchMedia("(prefers-color-scheme: dark)").matches && !isPrinting };
    for (const name of "back panel text soft line accent mark same less more".split(" "))
      colours[name] = style.getPropertyValue("--" + name).trim();
    nameColours.clear();
  }
  // The relative luminance of WCAG: 0 to 1. Degrees and percent.
  function luminance(hue, saturation, light) {
    const [red, green, blue] = [0, 8, 4].map((n) => {
      const k = (n + hue / 30) % 12, l = light / 100, most = saturation / 100 * Math.min(l, 1 - l);
      const value = l - most * Math.max(-1, Math.min(k - 3, 9 - k, 1));
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }
  function nameColour(name) {
    let colour = nameColours.get(name);
    if (colour) return colour;
    let hash = 2166136261;
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
    hash ^= hash >>> 15;
    const hue = (hash >>> 0) % 360, saturation = colours.isDark ? 42 : 62;
    let light = (colours.isDark ? 36 : 74) + ((hash >>> 9) % 3) * 4;
    // Dark, yellow and green would be too bright for the text on them, and blue too dim.
    while (colours.isDark && luminance(hue, saturation, light) > 0.16) light--;
    while (colours.isDark && luminance(hue, saturation, light) < 0.09) light++;
    colour = "hsl(" + hue + "," + saturation + "%," + light + "%)";
    nameColours.set(name, colour);
    return colour;
  }
  function fill(to, colour, ...box) {
    to.fillStyle = colour;
    to.fillRect(...box);
  }
  // Clears a canvas. Returns its context and width.
  function begin(canvas, height) {
    const ratio = devicePixelRatio || 1, width = canvas.parentElement.clientWidth;
    const columns = Math.round(width * ratio), lines = Math.round(height * ratio);
    if (canvas.width !== columns || canvas.height !== lines)
      Object.assign(canvas, { width: columns, height: lines }).style.height = height + "px";
    const to = canvas.getContext("2d");
    to.setTransform(ratio, 0, 0, ratio, 0, 0);
    fill(to, colours.back, 0, 0, width, height);
    to.font = "11px ui-monospace, Menlo, Consolas, monospace";
    to.textBaseline = "middle";
    return [to, width];
  }
  let hatchTile, hatchFor;
  function hatch(to) {
    if (hatchFor === colours) return hatchTile;
    const tile = document.createElement("canvas"), pen = tile.getContext("2d");
    tile.width = tile.height = 6;
    pen.strokeStyle = colours.isDark ? "rgba(255,255,255,.28)" : "rgba(0,0,0,.24)";
    pen.beginPath();
    for (const x of [-6, 0, 6]) { pen.moveTo(x, 6); pen.lineTo(x + 6, 0); }
    pen.stroke();
    hatchFor = colours;
    return (hatchTile = to.createPattern(tile, "repeat"));
  }
  const LETTER = 6.65;
  function label(to, text, x, y, width) {
    const letters = Math.floor((width - 6) / LETTER);
    if (letters < 2) return;
    to.fillText(text.length > letters ? text.slice(0, letters - 1) + "\u2026" : text, x + 3, y);
  }
  function niceStep(span, ticks) {
    const least = span / Math.max(ticks, 1), base = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map((n) => n * base).find((step) => step >= least);
  }
  // Marks from `top` on, and their times in the middle of y.
  function timeTicks(to, [from, end], left, width, top, height, y) {
    const step = niceStep(end - from, width / 110);
    to.textAlign = "center";
    for (let i = Math.ceil(from / step); i * step <= end; i++) {
      const x = Math.round(left + (i * step - from) / (end - from) * width) + 0.5;
      fill(to, colours.line, x, top, 1, height);
      to.fillStyle = colours.soft;
      const text = timeText(i * step), half = to.measureText(text).width / 2 + 4;
      to.fillText(text, Math.min(Math.max(x, left + half), left + width - half), y);
    }
    to.textAlign = "left";
  }
  // Draws at the next frame, once.
  function redraw(draw) {
    if (pending.has(draw)) return;
    pending.set(draw, requestAnimationFrame(() => {
      pending.delete(draw);
      const start = performance.now();
      draw();
      performance.measure("prof:" + draw.name, { start });
    }));
  }

  // ---- the time line ----
  const lineRows = [], ROW = 18, HEAD = 22;
  const view = { from: 0, to: 1, height: 0, chosen: null };
  function processText(index) {
    const [name, pid, rank] = data.processes[index];
    return (rank >= 0 ? "rank " + rank + ", " : "") + shown(name) + " (" + pid + ")";
  }
  function threadText(index) {
    const [process, name, tid, isStream] = data.threads[index];
    return (data.processes.length > 1 ? processText(process) + "  " : "") +
      (isStream ? "" : "thread ") + (name ? shown(name) : tid) +
      (name && !isStream ? "  " + tid : "");
  }
  function placeRows() {
    let y = 0, before = -1;
    for (const row of lineRows) {
      if (row.thread !== before) {
        row.head = y;
        y += HEAD;
      }
      before = row.thread;
      row.y = y;
      y += ROW;
    }
    view.height = y;
    view.to = Math.max(data.end_ns, 1);
    $("lanes-height").style.height = y + "px";
  }
  // The first index with values[index] > limit.
  function after(values, limit, low) {
    let high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] > limit) high = middle; else low = middle + 1;
    }
    return low;
  }
  // At most one rectangle a pixel. Whole pixels, and no hatch on narrow slices, make it cheap.
  function drawRow(to, row, y, width, { from, to: limit }) {
    const scale = width / (limit - from), { starts, ends, names, counts } = row;
    for (let i = after(ends, from, 0); i < starts.length && starts[i] < limit;) {
      const x = Math.round(Math.max((starts[i] - from) * scale, -2));
      const end = Math.round(Math.min((ends[i] - from) * scale, width + 2));
      const w = Math.max(end - x - (end - x > 3 ? 1 : 0), 1), name = data.names[names[i]][0];
      to.globalAlpha = found && !found[names[i]] ? 0.18 : 1;
      fill(to, nameColour(name), x, y, w, ROW - 2);
      if (counts[i] > 1 && w > 3) fill(to, hatch(to), x, y, w, ROW - 2);
      if (w > 22) {
        to.fillStyle = colours.isDark ? "#f2f4f6" : "#15181c";
        label(to, (counts[i] > 1 ? thousands(counts[i]) + " \u00d7 " : "") + shown(name),
          Math.max(x, 0), y + ROW / 2, w + Math.min(x, 0));
      }
      drawn++;
      i = w > 1 ? i + 1 : after(ends, from + (x + 1) / scale, i + 1);
    }
    to.globalAlpha = 1;
  }
  function drawTimeline() {
    const box = $("lanes"), all = Math.max(view.height, ROW);
    const height = isPrinting ? Math.min(all, 900) : Math.min(all, Math.round(innerHeight * 0.62));
    const [to, width] = begin($("lanes-canvas"), height), top = isPrinting ? 0 : box.scrollTop;
    drawn = 0;
    for (const row of lineRows) {
      const y = row.y - top;
      if (row.head !== undefined && row.head - top < height && row.head - top > -HEAD) {
        fill(to, colours.panel, 0, row.head - top, width, HEAD - 2);
        to.fillStyle = colours.soft;
        label(to, threadText(row.thread), 4, row.head - top + HEAD / 2 - 1, width);
      }
      if (y > -ROW && y < height) drawRow(to, row, y, width, view);
    }
    const mark = view.chosen;
    if (mark) {
      const scale = width / (view.to - view.from);
      const x = (mark.row.starts[mark.index] - view.from) * scale;
      to.strokeStyle = colours.mark;
      to.lineWidth = 2;
      to.strokeRect(x, mark.row.y - top,
        Math.max((mark.row.ends[mark.index] - view.from) * scale - x, 2), ROW - 2);
    }
    const [ruler] = begin($("ruler"), 26);
    timeTicks(ruler, [view.from, view.to], 0, width, 20, 6, 11);
  }
  const showTimeline = () => redraw(drawTimeline);
  function setView(from, to) {
    const end = Math.max(data.end_ns, 1), span = Math.min(Math.max(to - from, 16), end);
    view.from = Math.min(Math.max(from, 0), end - span);
    view.to = view.from + span;
    showTimeline();
  }
  function zoomLine(factor, at = (view.from + view.to) / 2) {
    setView(at - factor * (at - view.from), at + factor * (view.to - at));
  }
  const timeAt = (event) => view.from + (view.to - view.from) *
    (event.clientX - $("lanes").getBoundingClientRect().left) / $("lanes").clientWidth;
  function sliceAt(event) {
    const y = event.clientY - $("lanes").getBoundingClientRect().top + $("lanes").scrollTop;
    const row = lineRows.find((r) => y >= r.y && y < r.y + ROW), time = timeAt(event);
    if (!row) return null;
    const pixel = (view.to - view.from) / $("lanes").clientWidth;
    const index = after(row.ends, time - pixel, 0);
    return index < row.starts.length && row.starts[index] <= time + pixel ? { row, index } : null;
  }
  function sliceText(slice) {
    if (!slice) return "";
    const { row, index } = slice, [name, category] = data.names[row.names[index]];
    const count = row.counts[index], start = row.starts[index];
    return (count > 1 ? thousands(count) + " scopes, " : "") + shown(name) +
      (category ? "  [" + shown(category) + "]" : "") + "  " + timeText(row.ends[index] - start) +
      "  at " + timeText(start) + "  depth " + row.level + "  " + threadText(row.thread);
  }
  function choose(slice, isMoved) {
    view.chosen = slice;
    $("slice").textContent = sliceText(slice);
    if (slice && isMoved) {
      const start = slice.row.starts[slice.index], end = slice.row.ends[slice.index];
      const span = view.to - view.from;
      if (start < view.from || end > view.to)
        setView((start + end - span) / 2, (start + end + span) / 2);
      const box = $("lanes"), y = slice.row.y;
      if (y < box.scrollTop || y + ROW > box.scrollTop + box.clientHeight)
        box.scrollTop = y - box.clientHeight / 2;
    }
    showTimeline();
  }
  function zoomTo(slice) {
    const start = slice.row.starts[slice.index], end = slice.row.ends[slice.index];
    const edge = Math.max((end - start) * 0.05, 8);
    choose(slice);
    setView(start - edge, end + edge);
  }
  // The next scope that the search finds, in time and then from the top; or the one before.
  function findNext(isBack) {
    if (!found) return;
    hits ||= lineRows.flatMap((row) => [...row.starts.keys()].filter((i) => found[row.names[i]])
      .map((index) => ({ row, index, at: row.starts[index] })))
      .sort((a, b) => a.at - b.at || a.row.y - b.row.y);
    const old = view.chosen, at = old ? old.row.starts[old.index] : -1;
    let i = hits.findIndex((hit) => old && hit.row === old.row && hit.index === old.index);
    if (i < 0) i = hits.findIndex((hit) => hit.at > at) - (isBack ? 0 : 1);
    if (hits.length) choose(hits[(i + (isBack ? -1 : 1) + hits.length) % hits.length], true);
  }
  function listenTimeline() {
    const box = $("lanes");
    let drag = null;
    box.addEventListener("scroll", showTimeline);
    box.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) {
        event.preventDefault();
        zoomLine(Math.exp(Math.max(Math.min(event.deltaY, 120), -120) / 300), timeAt(event));
      } else if (event.deltaX || event.shiftKey) {
        event.preventDefault();
        const move = (event.deltaX || event.deltaY) * (view.to - view.from) / box.clientWidth;
        setView(view.from + move, view.to + move);
      }
    }, { passive: false });
    box.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.offsetX > box.clientWidth) return;
      drag = { x: event.clientX, from: view.from, to: view.to };
    });
    addEventListener("pointermove", (event) => {
      if (!drag) return;
      drag.isMoved ||= Math.abs(event.clientX - drag.x) > 3;
      const move = (drag.x - event.clientX) * (drag.to - drag.from) / box.clientWidth;
      if (drag.isMoved) setView(drag.from + move, drag.to + move);
    });
    addEventListener("pointerup", (event) => {
      if (drag && !drag.isMoved) choose(sliceAt(event));
      drag = null;
    });
    box.onmousemove = (event) => {
      if (!drag) $("slice").textContent = sliceText(sliceAt(event) || view.chosen);
    };
    box.ondblclick = (event) => { if (sliceAt(event)) zoomTo(sliceAt(event)); };
  }

  // ---- flame graph ----
  const flame = { paths: [], zoom: 0, kind: null, places: [] };
  const flameValue = (value) => (flame.kind === "memory" ? bytesText : timeText)(value);
  const flameName = (index) => (index ? shown(data.path_names[flame.paths[index].row]) : "all");
  function openFlame(graph) {
    Object.assign(flame, { kind: graph.kind, zoom: 0, most: graph.change_max });
    flame.paths = graph.paths.map(([parent, row, calls, total, own, base, baseOwn], index) =>
      ({ parent, row, calls, total, own, base, baseOwn, x: 0, next: 0, depth: 0, index }));
    flame.paths.slice(1).forEach((path) => {
      const outer = flame.paths[path.parent];
      path.depth = outer.depth + 1;
      path.x = path.next = outer.next;
      outer.next += path.total;
    });
    $("flame-note").textContent = (graph.kind === "memory" ? "Widths are allocated bytes."
      : "Widths are " + (graph.kind === "host" ? "self times." : "times of devices, by launch.")) +
      (graph.left_out ? " " + thousands(graph.left_out) + " small paths are not drawn." : "");
    for (const button of $("flame-kinds").children)
      button.setAttribute("aria-pressed", button.textContent === graph.kind);
    if (data.runs) showLegend(graph);
    redraw(drawFlame);
  }
  // Of a difference, colours are those of `prof flame`: the change of the frame's own value.
  function showLegend({ kind, change_max: most, gone }) {
    $("legend").hidden = false;
    const texts = { of: kind === "memory" ? "bytes" : "time", less: signed(0, most, flameValue),
      more: signed(most, 0, flameValue), note: (Math.max(...data.runs) > 1 ? "Means of " +
        data.runs.join(" runs of the base, and of ") + " new ones. " : "") +
        (gone ? "Paths with nothing in the new side are not drawn: " + thousands(gone) + "."
          : "") };
    for (const [id, text] of Object.entries(texts)) $("legend-" + id).textContent = text;
  }
  // "+1.2 ms, +10.5 %"
  const signed = (now, base, text) => (now < base ? "-" : "+") + text(Math.abs(now - base));
  const changeText = (now, base) => signed(now, base, flameValue) +
    (base ? ", " + signed(now, base, (n) => (100 * n / base).toFixed(1)) + " %" : "");
  const ownChange = ({ own, baseOwn }) =>
    (own || baseOwn ? "  own " + changeText(own, baseOwn) : "");
  const changeColour = ({ own, baseOwn }) => "color-mix(in srgb, " + colours.same + ", " +
    (own < baseOwn ? colours.less : colours.more) + " " +
    100 * Math.min(Math.abs(own - baseOwn) / (flame.most || 1), 1) + "%)";
  function drawFlame() {
    const all = flame.paths[flame.zoom];
    if (!all) return;
    const above = new Set();
    for (let i = flame.zoom; i; i = flame.paths[i].parent) above.add(flame.paths[i].parent);
    const width = $("flame-canvas").parentElement.clientWidth, scale = width / all.total;
    const isSeen = (p) => above.has(p.index) || (p.x >= all.x && p.x < all.x + all.total &&
      p.depth >= all.depth && p.total * scale >= 0.5);
    const seen = flame.paths.filter(isSeen);
    const levels = Math.min(Math.max(all.depth, ...seen.map((path) => path.depth)) + 1, 400);
    const [to] = begin($("flame-canvas"), levels * ROW + 2);
    flame.places = [];
    let matched = 0, end = -1;
    for (const path of seen) {
      const isAbove = above.has(path.index), name = flameName(path.index);
      const x = isAbove ? 0 : (path.x - all.x) * scale, w = isAbove ? width : path.total * scale;
      const y = path.depth * ROW + 1;
      to.globalAlpha = isAbove ? 0.55 : query && (!path.index || !matches(name)) ? 0.2 : 1;
      const colour = data.runs ? changeColour(path) : nameColour(name);
      const text = data.runs && path.index ? name + ownChange(path) : name;
      fill(to, path.index ? colour : colours.line, x, y, Math.max(w - (w > 3 ? 1 : 0), 0.5),
        ROW - 2);
      to.fillStyle = colours.text;
      label(to, text.length * LETTER < w - 6 ? text : name, x, y + ROW / 2 - 1, w);
      flame.places.push({ x, y, w, index: path.index });
    }
    to.globalAlpha = 1;
    $("frame").textContent = "";
    if (query) {
      const hits = flame.paths.filter((p) => p.index && matches(flameName(p.index)));
      hits.sort((a, b) => a.x - b.x || a.depth - b.depth).forEach((path) => {
        if (path.x < end) return;
        matched += path.total;
        end = path.x + path.total;
      });
      $("frame").textContent = "found: " + shareText(matched, flame.paths[0].total) + " of all";
    }
  }
  function frameText(index) {
    const path = flame.paths[index], own = path.own ? "  own " + flameValue(path.own) : "";
    return flameName(index) + "  " + flameValue(path.total) + "  " +
      shareText(path.total, flame.paths[0].total) + own +
      (path.calls ? "  " + thousands(path.calls) + " calls" : "") + (!data.runs ? "" :
      path.base ? "  change " + changeText(path.total, path.base) + ownChange(path)
        : "  nothing in the base");
  }
  function listenFlame() {
    const canvas = $("flame-canvas"), at = (event) => flame.places.find((p) =>
      event.offsetX >= p.x && event.offsetX < p.x + p.w && event.offsetY >= p.y &&
      event.offsetY < p.y + ROW);
    canvas.onmousemove = (event) => {
      $("frame").textContent = at(event) ? frameText(at(event).index) : "";
    };
    canvas.onclick = (event) => { if (at(event)) zoomFlame(at(event).index); };
    for (const graph of data.flames)
      element("button", $("flame-kinds"), graph.kind).onclick = () => openFlame(graph);
    openFlame(data.flames[0]);
  }
  const zoomFlame = (index) => { flame.zoom = index; redraw(drawFlame); };

  // ---- the table, in the order of html_lists.c: keys behind the second follow the durations ----
  const columns = [["Name", "text"], ["Category", "text"], ["Calls", "count"], ["Total", "time"],
    ["Self", "time"], ["Mean", "time"], ["Min", "time"], ["Median", "time"], ["p99", "time"],
    ["Max", "time"], ["Open", "count"], ["Device total", "time"], ["Device self", "time"],
    ["Memory", "bytes"], ["Device memory", "bytes"], ["Location", "text"]];
  const kinds = { text: shown, count: thousands, time: (ns) => timeText(ns, 5, ns < 1e14),
    bytes: bytesText };
  const SELF = 4, CALLS = 2, DURATIONS = 16;
  const table = { sort: 3, isUp: false, rows: [], limit: 50, used: [], keys: [] };
  function findColumns() {
    table.keys = data.keys.map((_, i) => i < 2 ? i : DURATIONS + i - 1);
    data.keys.forEach((title, i) => { columns[table.keys[i]] = [title, "text"]; });
    const isUsed = (i) => i < 10 || data.rows.some((row) => row[i]);
    table.used = [...table.keys, ...columns.keys()].filter((i, at) =>
      at < table.keys.length || i > 1 && i < DURATIONS && isUsed(i));
    const head = element("tr", $("head"));
    for (const i of table.used) {
      const cell = element("th", head, columns[i][0], columns[i][1] === "text" ? "text" : "");
      cell.tabIndex = 0;
      cell.addEventListener("click", () => sortTable(i));
      cell.addEventListener("keydown", (event) => { if (event.key === "Enter") sortTable(i); });
      if (i === SELF) element("th", head, "Self %").addEventListener("click", () => sortTable(i));
    }
  }
  function sortTable(i) {
    const isText = columns[i][1] === "text";
    Object.assign(table, { sort: i, isUp: table.sort === i ? !table.isUp : isText });
    showTable();
  }
  function showTable() {
    const { sort, isUp } = table, sign = isUp ? 1 : -1;
    table.rows = data.rows.filter((row) => table.keys.some((i) => matches(row[i])));
    table.rows.sort((a, b) => sign * (a[sort] < b[sort] ? -1 : a[sort] > b[sort] ? 1 : 0));
    [...$("head").firstChild.children].forEach((cell) => {
      if (cell.textContent !== columns[sort][0]) cell.removeAttribute("aria-sort");
      else cell.setAttribute("aria-sort", isUp ? "ascending" : "descending");
    });
    const body = document.createDocumentFragment();
    for (const row of table.rows.slice(0, table.limit)) {
      const line = element("tr", body, undefined, row === chosenRow ? "chosen" : "");
      for (const i of table.used) {
        const kind = columns[i][1], isBlank = kind === "text" ? i && !row[i] : i > 9 && !row[i];
        const isKnown = row[CALLS] > 0 || i <= CALLS || i > 9;
        const text = isBlank || !isKnown ? "" : kinds[kind](row[i]);
        const cell = element("td", line, text, kind === "text" ? "text" : "");
        if (kind === "text") cell.title = text;
        if (i === SELF) element("td", line, isKnown ? shareText(row[SELF], data.self_ns) : "");
      }
      line.addEventListener("click", () => chooseRow(row));
    }
    $("body").replaceChildren(body);
    const left = table.rows.length - table.limit;
    $("more").hidden = left <= 0;
    $("more").textContent = "Show " + thousands(Math.max(left, 0)) + " more";
  }

  // ---- the distribution of a row ----
  const distribution = { row: null, bars: [] };
  // The least duration of a bucket: 8 buckets for each doubling.
  const bucketBegin = (b) => (b < 16 ? b : ((b & 7) + 8) * 2 ** ((b >> 3) - 1));
  function chooseRow(row) {
    chosenRow = distribution.row = row;
    const pairs = row[DURATIONS], counts = [];
    let sum = 0;
    for (let i = 0; i < pairs.length; i += 2) sum += counts[pairs[i]] = pairs[i + 1];
    const first = counts.findIndex((count) => count);
    distribution.bars = [];
    for (let b = first; b >= 0 && b < counts.length; b++)
      distribution.bars.push([bucketBegin(b), bucketBegin(b + 1), counts[b] || 0]);
    $("distribution").hidden = false;
    $("distribution-name").textContent = table.keys.map((i, at) =>
      at ? row[i] && `, ${data.keys[at]} ${row[i]}` : shown(row[i])).join("");
    $("bucket").textContent = row[CALLS] ? thousands(sum) + (sum === 1 ? " call" : " calls") +
      ", median " + timeText(row[7]) + ", p99 " + timeText(row[8]) + ", longest " + timeText(row[9])
      : sum ? thousands(sum) + " runs on devices" : "There is no distribution of this row.";
    showTable();
    redraw(drawDistribution);
  }
  function drawDistribution() {
    const { bars, row } = distribution, left = 10, top = 28, height = 200, bottom = height - 24;
    const [to, width] = begin($("distribution-canvas"), height);
    if (!bars.length) return;
    const most = Math.max(...bars.map((bar) => bar[2])), step = (width - 2 * left) / bars.length;
    bars.forEach(([low, high, count], i) => {
      const h = count ? Math.max((bottom - top) * count / most, 1.5) : 0;
      fill(to, colours.accent, left + i * step, bottom - h,
        Math.max(step - (step > 3 ? 1 : 0), 1), h);
      const every = Math.max(Math.ceil(76 / step), 1), text = timeText(low, 3);
      to.fillStyle = colours.soft;
      if (i % every === 0 && left + i * step + to.measureText(text).width < width)
        to.fillText(text, left + i * step, height - 11);
    });
    // Each title has a line of its own, for the marks may be close together.
    for (const [title, ns, y] of [["median", row[7], 8], ["p99", row[8], 20]]) {
      const i = bars.findIndex(([low, high]) => ns >= low && ns < high);
      if (i < 0) continue;
      const [low, high] = bars[i], x = left + (i + (ns - low) / (high - low)) * step;
      const length = to.measureText(title).width;
      fill(to, colours.mark, x, y - 5, 1.5, bottom - y + 5);
      to.fillText(title, x + 4 + length < width ? x + 4 : x - 4 - length, y);
    }
  }
  function listenDistribution() {
    $("distribution-canvas").onmousemove = (event) => {
      const { bars } = distribution, width = $("distribution-canvas").clientWidth;
      const bar = bars[Math.floor((event.offsetX - 10) / (width - 20) * bars.length)];
      if (bar) $("bucket").textContent = thousands(bar[2]) + " calls of " + timeText(bar[0]) +
        " to " + timeText(bar[1]);
    };
  }

  // ---- curves: memory and counters ----
  const curves = [];
  function addCurve(parent, curve) {
    curve.canvas = element("canvas", element("div", parent, undefined, "frame"));
    curves.push(curve);
  }
  function drawCurve(curve) {
    const height = curve.height, left = 74, top = 12, bottom = height - 24;
    const [to, width] = begin(curve.canvas, height), right = width - 12;
    const values = curve.lines.flatMap((line) => line.values.filter((v) => v !== null));
    const high = Math.max(...values, 0), low = Math.min(...values, 0);
    const step = curve.text === bytesText ? 2 ** Math.ceil(Math.log2((high - low || 1) / 4))
      : niceStep(high - low || 1, 4);
    const end = Math.max(Math.ceil(high / step), 1) * step, start = Math.floor(low / step) * step;
    const y = (value) => bottom - (value - start) / (end - start) * (bottom - top);
    to.textAlign = "right";
    for (let value = start; value <= end; value += step) {
      fill(to, colours.line, left, Math.round(y(value)), right - left, 1);
      to.fillStyle = colours.soft;
      to.fillText(curve.text(value), left - 6, y(value));
    }
    to.textAlign = "left";
    timeTicks(to, [curve.from, curve.to], left, right - left, bottom, 4, bottom + 14);
    for (const line of curve.lines) {
      const count = line.values.length, dx = (right - left) / count;
      to.beginPath();
      let last = null;
      line.values.forEach((value, i) => {
        if (value === null && !line.isHeld) return;
        const now = value === null ? last : value;
        if (now === null) return;
        if (last === null) to.moveTo(left + i * dx, y(now));
        else { to.lineTo(left + i * dx, y(last)); to.lineTo(left + i * dx, y(now)); }
        last = now;
      });
      if (last !== null) to.lineTo(right, y(last));
      to.strokeStyle = colours[line.colour];
      to.lineWidth = 1.6;
      to.stroke();
      if (line.isFilled) {
        to.lineTo(right, y(0));
        to.lineTo(left, y(0));
        to.globalAlpha = 0.2;
        to.fillStyle = colours[line.colour];
        to.fill();
        to.globalAlpha = 1;
      }
    }
  }
  const drawCurves = () => curves.forEach(drawCurve);
  const peakText = (what, [bytes, ns]) =>
    `peak of ${what}: ${bytesText(bytes)} at ${timeText(ns)}`;
  // The first ones are texts.
  const addCells = (row, tag, texts, textCount) => texts.forEach((text, i) => {
    element(tag, row, text, i < textCount ? "text" : "").title = text;
  });
  function showPools() {
    for (const pool of data.pools) {
      element("h3", $("memory"), shown(pool.name) + " on " + pool.device +
        (data.processes.length > 1 ? ", " + processText(pool.process) : ""));
      const box = element("div", $("memory"), undefined, "pool"), side = element("div", box);
      const lines = [{ what: "used", values: pool.used, colour: "accent", isFilled: true }];
      if (pool.allocated) lines.push({ what: "allocated", values: pool.allocated, colour: "mark" });
      addCurve(side, { lines, from: pool.begin_ns, to: Math.max(pool.end_ns, pool.begin_ns + 1),
        height: 230, text: bytesText });
      const note = element("p", side, undefined, "status");
      for (const { what, colour } of lines) {
        element("span", note, "\u25a0 ", colour);
        note.append(peakText(what, pool[what + "_peak"]) + "  ");
      }
      if (pool.missing) note.append(thousands(pool.missing) + " events lost: the curves have gaps");
      const list = element("div", box, undefined, "scroll"), live = element("table", list);
      const head = element("tr", element("thead", live)), body = element("tbody", live);
      addCells(head, "th", ["Live at the peak, by scope", "Count", "Bytes"], 1);
      for (const [name, count, bytes] of pool.live)
        addCells(element("tr", body), "td", [name ? shown(name) : "(no scope)", thousands(count),
          bytesText(bytes)], 1);
      if (pool.used_peak[0] && !pool.live_rows)
        element("td", element("tr", body), "not known: only sums were recorded", "text");
      if (pool.live_rows > pool.live.length)
        element("td", element("tr", body), "and " + (pool.live_rows - pool.live.length) + " more",
          "text");
    }
    if (data.pools_left_out)
      element("p", $("memory"), data.pools_left_out + " more pools are not shown", "hint");
  }
  function showCounters() {
    const grid = element("div", $("counters"), undefined, "small");
    for (const [name, values] of data.counters) {
      const box = element("div", grid), [title, category] = data.names[name];
      element("h3", box, shown(title) + (category ? "  [" + shown(category) + "]" : ""));
      addCurve(box, { lines: [{ values, colour: "accent", isHeld: true }], from: 0,
        to: Math.max(data.end_ns, 1), height: 150, text: (n) => String(Number(n.toPrecision(4))) });
    }
  }

  // ---- steps ----
  const stepAt = (event) => {
    const count = data.steps.length, width = $("steps-canvas").clientWidth;
    return data.steps[Math.min(Math.floor(event.offsetX / width * count), count - 1)];
  };
  function drawSteps() {
    const height = 170, [to, width] = begin($("steps-canvas"), height), all = data.steps;
    const most = all.reduce((high, step) => Math.max(high, step[1]), 1), dx = width / all.length;
    all.forEach(([, ns], i) => {
      const h = (height - 22) * ns / most;
      fill(to, colours.accent, i * dx, height - h, Math.max(dx - (dx > 4 ? 2 : 0), 1), h);
    });
    to.fillStyle = colours.soft;
    to.fillText("longest: " + timeText(most), 6, 10);
  }
  // The chosen step above the median one, from their begins, at one scale.
  function drawSides() {
    const rows = [data.chosenStep, data.medianStep].map(([, , , thread]) =>
      lineRows.filter((row) => row.thread === thread).slice(0, 12));
    const [to, width] = begin($("sides-canvas"), (rows[0].length + rows[1].length) * ROW +
      2 * HEAD + 26), span = Math.max(data.chosenStep[1], data.medianStep[1], 1);
    let y = 26;
    timeTicks(to, [0, span], 0, width, 20, 6, 11);
    [["", data.chosenStep], ["median: ", data.medianStep]].forEach(([title, step], i) => {
      fill(to, colours.panel, 0, y, width, HEAD - 2);
      to.fillStyle = colours.soft;
      label(to, title + stepText(step), 4, y + HEAD / 2 - 1, width);
      y += HEAD;
      to.save();
      to.beginPath();
      to.rect(0, y, width * step[1] / span, rows[i].length * ROW);
      to.clip();
      for (const row of rows[i]) {
        drawRow(to, row, y, width, { from: step[0], to: step[0] + span });
        y += ROW;
      }
      to.restore();
    });
  }
  const stepText = ([start, ns, n]) => `step ${n}  ${timeText(ns)}  at ${timeText(start)}`;
  function listenSteps() {
    const canvas = $("steps-canvas");
    const sorted = [...data.steps].sort((a, b) => a[1] - b[1]);
    data.medianStep = sorted[(sorted.length - 1) >> 1];
    data.chosenStep = sorted[sorted.length - 1];
    $("steps-note").textContent = thousands(data.steps.length) + " steps, median " +
      timeText(data.medianStep[1]) + "." + (data.steps_left_out ?
        " " + thousands(data.steps_left_out) + " more are not shown." : "");
    canvas.onmousemove = (event) => { $("step").textContent = stepText(stepAt(event)); };
    canvas.onclick = (event) => {
      const [start, ns] = data.chosenStep = stepAt(event);
      setView(start - ns * 0.02, start + ns * 1.02);
      redraw(drawSides);
    };
  }

  // ---- devices ----
  function showDevices() {
    const titles = ["Device", "Name", "Back end", "Driver", "Process", "Note", "Scopes", "Records",
      "Clock error", "Memory"], textCount = 6;
    const rows = data.devices.map(([process, ...values]) => {
      const [device, name, end, driver, scopes, records, error, bytes, note] = values;
      const texts = [device, name, end, driver, processText(process), note];
      return [...texts.map((text) => text && shown(text)), thousands(scopes), thousands(records),
        timeText(error), bytes ? bytesText(bytes) : ""];
    });
    // A column without a value is left out.
    const used = titles.map((_, i) => i).filter((i) => rows.some((row) => row[i]));
    const addRow = (parent, tag, texts) => addCells(element("tr", parent), tag,
      used.map((i) => texts[i]), used.filter((i) => i < textCount).length);
    addRow($("devices-head"), "th", titles);
    for (const row of rows) addRow($("devices-body"), "td", row);
  }

  // ---- the page ----
  function search(text) {
    query = text.toLowerCase();
    hits = null;
    found = query ? data.names.map(([name, category]) => matches(name) || matches(category)) : null;
    table.limit = 50;
    showTable();
    $("found").textContent = query ? thousands(table.rows.length) + " rows" : "";
    drawAll();
  }
  function reset() {
    $("find").value = "";
    if (query) search("");
    choose(null);
    flame.zoom = 0;
    setView(0, data.end_ns);
    redraw(drawFlame);
  }
  function onKey(event) {
    const isTyping = event.target === $("find"), span = view.to - view.from;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      $("find").blur();
      reset();
    } else if (event.key === "Enter" && !/^(TH|A|BUTTON)$/.test(event.target.tagName)) {
      findNext(event.shiftKey);
    } else if (isTyping) {
      return;
    } else if (event.key === "/") {
      $("find").focus();
      $("find").select();
    } else {
      const move = (by) => setView(view.from + by * span, view.to + by * span);
      const keys = { w: () => zoomLine(0.7), s: () => zoomLine(1 / 0.7), a: () => move(-1 / 8),
        d: () => move(1 / 8), f: () => view.chosen && zoomTo(view.chosen) };
      const act = keys[{ ArrowLeft: "a", ArrowRight: "d" }[event.key] || event.key.toLowerCase()];
      if (!act) return;
      act();
    }
    event.preventDefault();
  }
  function drawAll(draw = redraw) {
    if (lineRows.length) draw(drawTimeline);
    if (data.flames.length) draw(drawFlame);
    if (distribution.row) draw(drawDistribution);
    if (data.steps.length) [drawSteps, drawSides].forEach((part) => draw(part));
    if (curves.length) draw(drawCurves);
  }
  function showParts() {
    for (const [id, part] of Object.entries({ summary: [1], difference: $("difference").children,
      timeline: lineRows, flame: data.flames, table: data.rows, memory: data.pools,
      steps: data.steps, counters: data.counters, devices: data.devices })) {
      $(id).hidden = !part.length;
      if (part.length) element("a", $("nav"), $(id).firstElementChild.textContent).href = "#" + id;
    }
    if (data.shift)
      $("grid").textContent = "Times are on a grid of " + timeText(2 ** data.shift) +
        ". Hatched: several scopes that are shorter.";
    $("table-note").textContent = data.all_rows > data.rows.length ? thousands(data.all_rows -
      data.rows.length) + " rows with less time are left out." : "";
  }
  async function main() {
    const bytes = await readBytes();
    const size = new DataView(bytes.buffer).getUint32(0, true);
    data = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
    readColours();
    readRows({ bytes, at: 4 + size });
    showParts();
    performance.mark("prof:data");
    findColumns();
    showTable();
    placeRows();
    listenTimeline();
    if (data.flames.length) listenFlame();
    if (data.steps.length) listenSteps();
    [listenDistribution, showPools, showCounters, showDevices].forEach((part) => part());
    $("find").addEventListener("input", (event) => search(event.target.value));
    $("more").onclick = () => { table.limit = Infinity; showTable(); };
    addEventListener("keydown", onKey);
    addEventListener("resize", () => drawAll());
    matchMedia("(prefers-color-scheme: dark)").onchange = () => { readColours(); drawAll(); };
    window.onbeforeprint = window.onafterprint = (event) => {
      isPrinting = root.classList.toggle("print", event.type === "beforeprint");
      readColours();
      drawAll((draw) => draw());
    };
    drawAll();
    // For tests, and for a person at the browser's console.
    window.prof = { data, view, rows: lineRows, flame, table, setView, zoomLine, search, choose,
      findNext, reset, chooseRow, sortTable, zoomFlame, sliceText, sliceAt, drawn: () => drawn };
    requestAnimationFrame(() => requestAnimationFrame(() => {
      performance.mark("prof:ready");
      root.dataset.ready = "1";
    }));
  }
  main().catch((error) => {
    $("failure").hidden = false;
    $("failure").textContent = "The data of this report could not be read: " + error.message +
      ". A browser of 2023 or later is needed.";
    throw error;
  });
})();
