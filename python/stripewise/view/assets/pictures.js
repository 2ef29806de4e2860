// The pictures: processes over time, offset over time, heat over a file, distributions.

const OPS = [["reads", "read"], ["writes", "write"]];
const LEGEND = [...OPS, ["both", "both"]];

// Fills every pixel of a view from bins: `cell(x0, x1, y0, y1)` gives strength 0..1 and kind, or null where there is nothing.
function fillPixels(view, cell, xs, ys) {
  const { x, y, w, h } = view.box, ratio = view.canvas.width / view.canvas.clientWidth;
  const width = Math.max(1, Math.round(w * ratio)), height = Math.max(1, Math.round(h * ratio));
  const image = view.context.createImageData(width, height), tones = {};
  // -1 is beyond the last bin: the other run's axis is longer.
  const bin = (axis, part, size, count) => { const at = Math.floor(view.value(axis, part) / size); return at < count ? Math.max(0, at) : -1; };
  const columns = Array.from({ length: width }, (_, i) => [bin("x", i / width, xs.width, xs.count), bin("x", (i + .999) / width, xs.width, xs.count)]);
  for (let j = 0; j < height; j++) {
    const part = view.picture.y.isDown ? j / height : 1 - (j + 1) / height;
    const low = bin("y", part, ys.width, ys.count), high = Math.max(low, bin("y", part + .999 / height, ys.width, ys.count));
    if (low < 0) continue;
    for (let i = 0; i < width; i++) {
      if (columns[i][0] < 0) break;
      const found = cell(columns[i][0], Math.max(...columns[i]), low, high);
      if (!found) continue;
      const to = (j * width + i) * 4, tone = tones[found[1]] ??= channels(found[1]);
      image.data[to] = tone[0]; image.data[to + 1] = tone[1]; image.data[to + 2] = tone[2];
      image.data[to + 3] = 255 * (.25 + .75 * Math.min(1, found[0]));
    }
  }
  const held = document.createElement("canvas");
  held.width = width; held.height = height;
  held.getContext("2d").putImageData(image, 0, 0);
  view.context.drawImage(held, x, y, w, h);
}

// `scale` is what the axes of two runs side by side have in common: span of time, extent of the file.
async function timelinePicture(parent, data, scale) {
  const { together } = data.timeline, last = data.processes.length - 1;
  const name = (row) => data.processes[row * together] + (together > 1 ? ` to ${data.processes[Math.min(last, (row + 1) * together - 1)]}` : "");
  await rowsPicture(parent, data.timeline, data.end_ns, scale, {
    label: `Time in requests of ${data.processes.length} processes over ${timeText(data.end_ns)}`,
    name, tick: (row) => data.processes[row * together], spent: "in requests", head: ["process"], more: () => [],
  });
}

async function loadPicture(parent, data, load, scale) {
  const targets = load.targets;
  await rowsPicture(parent, load, data.end_ns, scale, {
    label: `Load of ${targets.length} targets over ${timeText(data.end_ns)}`,
    name: (row) => `${targets[row].name} (${targets[row].class})`, tick: (row) => targets[row].name, spent: "at work by the model",
    head: ["target", "accesses"], more: (row) => [countText(targets[row].accesses[0] + targets[row].accesses[1])],
  });
}

// Rows over time: strength is the part of the time that was spent, colour what was moved.
async function rowsPicture(parent, found, end, scale, told) {
  const [busy, read, written] = await Promise.all(found.layers.map(column));
  const { rows, count, width, together } = found;
  const cell = (x0, x1, y0) => {
    let spent = 0, r = 0, w = 0;
    for (let i = y0 * count + x0; i <= y0 * count + x1; i++) { spent += busy[i]; r += read[i]; w += written[i]; }
    return r || w ? [spent / (width * together * (x1 - x0 + 1)), r && w ? "both" : r ? "read" : "write"] : null;
  };
  new View(parent, {
    label: told.label,
    height: Math.min(460, Math.max(110, 40 + rows * 22)),
    legend: LEGEND,
    x: { end: scale.span, text: timeText, least: 1000 },
    y: { end: rows, isDown: true, isFree: rows > 24, least: 1, text: (row) => told.tick(Math.floor(row)),
      ticks: (view) => {
        const step = Math.max(1, Math.ceil((view.y[1] - view.y[0]) * 18 / view.box.h)), first = Math.ceil(view.y[0] / step) * step;
        const all = [];
        for (let row = first; row < view.y[1]; row += step) all.push(row + .5);
        return all;
      } },
    draw: (view) => fillPixels(view, cell, { width, count }, { width: 1, count: rows }),
    hover: (view, x, y) => {
      const row = Math.min(rows - 1, Math.floor(y)), bin = Math.floor(x / width), at = row * count + bin;
      if (bin >= count) return null;
      return `${told.name(row)}, ${timeText(bin * width, end)} to ${timeText((bin + 1) * width, end)}\n` +
        `${told.spent} ${timeText(busy[at])}\nread ${bytesText(read[at])}, written ${bytesText(written[at])}`;
    },
    table: [[...told.head, told.spent, "read", "written"], () => Array.from({ length: rows }, (_, row) => {
      const sum = (layer) => layer.subarray(row * count, (row + 1) * count).reduce((total, each) => total + each, 0);
      return [told.name(row), ...told.more(row), timeText(sum(busy)), bytesText(sum(read)), bytesText(sum(written))];
    })],
  });
}

function drawPatterns(view, patterns) {
  const c = view.context;
  c.strokeStyle = colour("text"); c.lineWidth = 1.2; c.setLineDash([5, 4]); c.globalAlpha = view.isOn ? .45 : 1;
  for (const pattern of patterns) for (const [times, places] of pattern.lines) {
    c.beginPath();
    times.forEach((time, i) => (i ? c.lineTo(view.px(time), view.py(places[i])) : c.moveTo(view.px(time), view.py(places[i]))));
    c.stroke();
  }
  c.setLineDash([]); c.globalAlpha = 1;
}

// How reads that replicas of a file served are drawn and told; null where none did.
function replicasOf(file) {
  if (!file.replicas) return null;
  const { coloured, served } = file.replicas, others = served.filter(([number]) => !coloured.includes(number));
  const legend = coloured.map((number, i) => [`replica ${countText(number)}`, `replica${i + 1}`]);
  const isKnown = others.every(([number]) => number !== null);
  if (others.length) legend.push([isKnown ? `${countText(others.length)} other replicas` : legend.length ? "other replicas" : "replicas", "others"]);
  return {
    toggle: ["by replica", legend],
    // Of a slot: 0 is the file itself.
    kind: (slot) => (slot === 0 ? "read" : slot <= coloured.length ? `replica${slot}` : "others"),
    // The slot of a request's code, and who served it, in words.
    slot: (code) => (code === 0 ? 0 : coloured.indexOf(code - 2) + 1 || legend.length),
    text: (code) => (code === 0 ? "" : code === 1 ? "\nfrom a replica" : `\nfrom replica ${countText(code - 2)}`),
    name: (slot) => (slot === 0 ? "the file itself" : legend[Math.min(slot, legend.length) - 1][0]),
  };
}

async function placesPicture(parent, data, file, scale) {
  const shared = {
    label: `Offset over time in ${file.path}`, height: 340,
    x: { end: scale.span, text: timeText, least: 1000 }, y: { end: scale.extent, text: bytesText, isBytes: true, isFree: true, least: 64 },
    table: [["pattern", "requests", "bytes", "from", "to"], () => (file.patterns ?? []).map((each) => [each.sentence, countText(each.records), bytesText(each.bytes), bytesText(each.span[0]), bytesText(each.span[1])])],
  };
  const patterns = file.patterns ?? [], replicas = replicasOf(file);
  if (replicas) shared.toggle = replicas.toggle;
  if (file.single) {
    const one = file.single, [starts, time, offsets, size, process, write] = await Promise.all([one.start, one.time, one.offset, one.size, one.process, one.write].map(column));
    const start = summed(starts), offset = summed(offsets), codes = replicas ? await column(one.replica) : null;
    const slots = codes?.map(replicas.slot);
    new View(parent, { ...shared, legend: OPS,
      draw: (view) => {
        const kinds = [[0, 0, "read"], ...(view.isOn ? replicas.toggle[1].map(([, op], i) => [0, i + 1, op]) : []), [1, 0, "write"]];
        for (const [kind, slot, op] of kinds) {
          view.context.fillStyle = colour(op);
          for (let i = 0; i < start.length; i++) if (write[i] === kind && (view.isOn ? slots[i] : 0) === slot) {
            const x = view.px(start[i]), y = view.py(offset[i] + size[i]);
            view.context.fillRect(x, y, Math.max(2, view.px(start[i] + time[i]) - x), Math.max(1.5, view.py(offset[i]) - y));
          }
        }
        drawPatterns(view, patterns);
      },
      hover: (view, x, y) => {
        let best = -1, least = 100;
        for (let i = 0; i < start.length; i++) {
          const dx = Math.max(view.px(start[i]) - view.px(x), view.px(x) - view.px(start[i] + time[i]), 0);
          const dy = Math.max(view.py(offset[i] + size[i]) - view.py(y), view.py(y) - view.py(offset[i]), 0);
          if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = i; }
        }
        return best < 0 ? null : `${data.processes[process[best]]} ${write[best] ? "writes" : "reads"} ${bytesText(size[best])} (${countText(size[best])} B)\n` +
          `at ${countText(offset[best])} B\nfrom ${timeText(start[best])}, for ${timeText(time[best])}${codes ? replicas.text(codes[best]) : ""}`;
      } });
    return;
  }
  const found = file.raster, [read, written] = await Promise.all(found.layers.map(column));
  const { count, width, time_count: times, time_width: step } = found;
  const most = Math.log1p(Math.max(1, read.reduce((a, b) => Math.max(a, b), 0), written.reduce((a, b) => Math.max(a, b), 0)));
  // Where a pixel has several cells, its slot is that of most bytes read.
  const slots = replicas ? await column(found.slot) : null, tally = new Float64Array(slots ? slots.reduce((a, b) => Math.max(a, b), 0) + 1 : 0);
  const cell = (isOn) => (x0, x1, y0, y1) => {
    let r = 0, w = 0;
    if (isOn) tally.fill(0);
    for (let t = x0; t <= x1; t++) for (let i = t * count + y0; i <= t * count + y1; i++) { r += read[i]; w += written[i]; if (isOn) tally[slots[i]] += read[i]; }
    const reads = isOn ? replicas.kind(tally.indexOf(Math.max(...tally))) : "read";
    return r || w ? [Math.log1p(Math.max(r, w)) / most, r && w ? "both" : r ? reads : "write"] : null;
  };
  new View(parent, { ...shared, legend: LEGEND,
    draw: (view) => { fillPixels(view, cell(view.isOn), { width: step, count: times }, { width, count }); drawPatterns(view, patterns); },
    hover: (view, x, y) => {
      const t = Math.floor(x / step), i = Math.floor(y / width), at = t * count + i;
      if (t >= times || i >= count) return null;
      return `${timeText(t * step, data.end_ns)} to ${timeText((t + 1) * step, data.end_ns)}\n${bytesText(i * width)} to ${bytesText((i + 1) * width)}\n` +
        `read ${bytesText(read[at])}, written ${bytesText(written[at])}${slots && read[at] ? `\nmost of it from ${replicas.name(slots[at])}` : ""}`;
    } });
}

async function heatPicture(parent, file, scale) {
  const found = file.heat, [read, written] = await Promise.all(found.layers.map(column)), { width, count } = found;
  // How often each byte is read and written on average.
  const most = Math.max(read.reduce((a, b) => Math.max(a, b), 0), written.reduce((a, b) => Math.max(a, b), 0), 1) / width;
  new View(parent, {
    label: `How often bytes of ${file.path} are read and written`, height: 150, legend: OPS,
    x: { end: scale.extent, text: bytesText, isBytes: true, least: 64 },
    y: { end: most * 1.05, least: most * .01, text: (value) => `${Number(value.toPrecision(3))} x`,
      ticks: (view) => [0, .5, 1].map((part) => view.y[0] + (view.y[1] - view.y[0]) / 1.05 * part) },
    draw: (view) => {
      for (const [layer, op] of [[read, "read"], [written, "write"]]) {
        const c = view.context;
        c.beginPath(); c.strokeStyle = c.fillStyle = colour(op); c.lineWidth = 1.4;
        const low = Math.max(0, Math.floor(view.x[0] / width) - 1), high = Math.min(count - 1, Math.ceil(view.x[1] / width) + 1);
        c.moveTo(view.px(low * width), view.py(0));
        for (let i = low; i <= high; i++) { c.lineTo(view.px(i * width), view.py(layer[i] / width)); c.lineTo(view.px((i + 1) * width), view.py(layer[i] / width)); }
        c.lineTo(view.px((high + 1) * width), view.py(0));
        c.stroke(); c.globalAlpha = .18; c.fill(); c.globalAlpha = 1;
      }
    },
    hover: (view, x) => {
      const i = Math.floor(x / width);
      if (i >= count) return null;
      return `${bytesText(i * width)} to ${bytesText((i + 1) * width)}\nread ${bytesText(read[i])}, written ${bytesText(written[i])}`;
    },
    table: [["from", "to", "read", "written"], () => {
      const step = Math.ceil(count / 256), sum = (layer, from) => layer.subarray(from, from + step).reduce((a, b) => a + b, 0);
      return Array.from({ length: Math.ceil(count / step) }, (_, i) => [bytesText(i * step * width), bytesText(Math.min(count, (i + 1) * step) * width), bytesText(sum(read, i * step)), bytesText(sum(written, i * step))]);
    }],
  });
}

// Counts by bucket as bars; zoom by dragging, as uPlot does.
const charts = [];

// `all` are the counts of every run that stands beside it: they have one axis.
function bars(parent, title, lows, counts, text, all) {
  let buckets = Math.max(1, ...all.map((each) => each.length)), first = 0;
  while (buckets > 1 && !all.some((each) => each[buckets - 1])) buckets--;
  while (first < buckets - 1 && !all.some((each) => each[first])) first++;
  const places = Array.from({ length: buckets - first }, (_, i) => i + first), pad = (each) => places.map((i) => each[i] ?? 0);
  const figure = made(parent, "figure");
  made(figure, "h3", title);
  const box = made(figure, "div"), caption = made(figure, "figcaption");
  for (const [name, kind] of OPS) made(caption, "span", name, `key ${kind}`);
  tableButton(figure, caption, [title, "reads", "writes"], () => places.map((i) => [text(lows(i)), ...counts.map((each) => countText(each[i] ?? 0))]));
  let chart = null, width = 0;
  const draw = () => {
    chart?.destroy();
    width = box.clientWidth;
    const both = pad(counts[0]).map((each, i) => each + (counts[1][i + first] ?? 0));
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, font: "12px system-ui, sans-serif" };
    const paths = uPlot.paths.bars({ size: [.8, 60] });
    chart = new uPlot({
      width: Math.max(280, width), height: 220, legend: { show: false }, cursor: { points: { show: false }, y: false, drag: { x: true, y: false } },
      scales: { x: { time: false, range: (u, from, to) => [Math.floor(from) - .6, Math.ceil(to) + .6] }, y: { range: (u, from, to) => [0, to * 1.08 || 1] } },
      axes: [{ ...axis, values: (u, at) => at.map((i) => (Math.abs(i - Math.round(i)) < 1e-6 && i >= 0 ? text(lows(Math.round(i))) : "")), space: 76, incrs: [1, 2, 4, 8, 16, 32] }, { ...axis, size: 92, values: (u, at) => at.map(countText) }],
      series: [{}, ...["write", "read"].map((op) => ({ label: op, stroke: colour(op), fill: colour(op), width: 0, points: { show: false }, paths }))],
      hooks: { setCursor: [(u) => {
        const i = u.cursor.idx;
        if (i === null || i === undefined || u.cursor.left < 0) { hideTip(); return; }
        const place = u.over.getBoundingClientRect();
        showTip(`from ${text(lows(places[i]))}\n${countText(counts[0][places[i]] ?? 0)} reads, ${countText(counts[1][places[i]] ?? 0)} writes`, place.left + u.cursor.left, place.top + (u.cursor.top ?? 0));
      }] },
    }, [places, both, pad(counts[0])], box);
  };
  // A chart fits its box, which is narrower once there is another beside it.
  new ResizeObserver(() => { if (box.clientWidth !== width) draw(); }).observe(box);
  charts.push(draw);
}
