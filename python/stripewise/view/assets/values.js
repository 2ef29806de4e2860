"use strict";
// Numbers as the page holds them, and as people read them.

async function column(blob) {
  const packed = Uint8Array.from(atob(blob.data), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const values = new Float64Array(blob.n);
  let factor = blob.unit;
  for (let plane = 0; plane < blob.planes; plane++, factor *= 256) {
    const from = plane * blob.n;
    for (let i = 0; i < blob.n; i++) values[i] += bytes[from + i] * factor;
  }
  return values;
}

// Differences of neighbours back to numbers: 2n is n, 2n - 1 is -n.
function summed(changes) {
  let at = 0;
  return changes.map((each) => (at += each % 2 ? -(each + 1) / 2 : each / 2));
}

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

function bytesText(value) {
  let unit = 0;
  while (value >= 1024 && unit < SIZES.length - 1) { value /= 1024; unit++; }
  return `${unit && value < 99.95 ? Number(value.toFixed(value < 9.995 ? 2 : 1)) : Math.round(value)} ${SIZES[unit]}`;
}

const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

function timeText(ns, of) {
  const [unit, name] = TIMES.find(([least]) => Math.abs(of ?? ns) >= least) ?? TIMES[3];
  return `${Number((ns / unit).toPrecision(4)).toLocaleString("en")} ${name}`;
}

const countText = (value) => Math.round(value).toLocaleString("en");

// Steps of an axis: 1, 2, 5 times a power of ten; of bytes powers of two.
function ticks(from, to, many, isBytes) {
  const least = (to - from) / many;
  let step = isBytes ? 2 ** Math.ceil(Math.log2(least)) : 10 ** Math.floor(Math.log10(least));
  if (!isBytes) step *= [1, 2, 5, 10].find((factor) => step * factor >= least);
  step = Math.max(step, 1);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to && found.length < 60; at += step) found.push(at);
  return found;
}
