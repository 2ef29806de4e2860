// The page from its data.

const of = (id) => document.getElementById(id);

// A place for each run: one, or two side by side, each below its name.
function places(parent, runs) {
  if (runs.length < 2) return [parent];
  const pair = made(parent, "div", undefined, "pair");
  return runs.map((run) => { const place = made(pair, "div"); made(place, "p", run.source, "quiet"); return place; });
}

function tellFindings(parent, data) {
  if (data.findings.length && data.prices) made(parent, "p", data.prices[0].toUpperCase() + data.prices.slice(1), "quiet");
  for (const each of data.findings) {
    const box = made(parent, "div", undefined, "finding");
    made(made(box, "p"), "strong", each.title);
    const list = made(box, "ul");
    for (const line of each.evidence.split("\n")) made(list, "li", line);
    made(box, "p", each.price, "quiet");
    made(box, "p", each.advice);
    if (each.command) made(made(box, "p"), "code", each.command);
  }
  if (!data.findings.length) made(parent, "p", "no findings", "quiet");
}

const PHASES_TOLD = 6;

function tellPhases(parent, data) {
  const kinds = { read: "reads", write: "writes", both: "reads and writes" };
  const told = data.phases.slice(0, PHASES_TOLD).map((phase) => `${timeText(phase.begin_ns, data.end_ns)} to ${timeText(phase.end_ns, data.end_ns)}: ${kinds[phase.kind]} ${bytesText(phase.read + phase.written)}`);
  if (data.phases.length > PHASES_TOLD) told.push(`${data.phases.length - PHASES_TOLD} phases more`);
  made(parent, "p", told.join("; "), "quiet");
}

// Who did how much: of the busiest target and of the mean of all.
function tellLoad(load, span) {
  const work = load.targets.map((each) => each.work_ns), most = Math.max(...work), mean = work.reduce((a, b) => a + b, 0) / work.length;
  const busiest = load.targets[work.indexOf(most)].name;
  const limit = span && most > span ? " (upper limits, for first to last request took less: memory served accesses, or they went on where others ended)" : "";
  const more = load.more ? `; ${countText(load.more)} targets with fewer bytes are not shown` : "";
  const rest = load.without ? `; ${countText(load.without)} requests are not among it: their files lie elsewhere, or their places are not known` : "";
  const copied = load.copied ? `; ${countText(load.copied)} reads are not among it: copies of the files served them` : "";
  return `${load.store}, ${load.as_read}: ${busiest} works ${timeText(most)} by the model, a target on average ${timeText(mean)}${limit}${more}${rest}${copied}`;
}

function tellFigures(data) {
  const total = data.total, [reads, writes] = total.requests;
  const row = made(of("figures"), "div", undefined, "figures");
  for (const [what, value] of [
    ["requests", countText(reads + writes)], ["read", bytesText(total.bytes[0])], ["written", bytesText(total.bytes[1])], ["files", countText(data.files_in_all)],
    ["processes", countText(data.processes.length)], ["first to last request", timeText(total.end_ns - total.begin_ns)], ["start of the run to its last request", timeText(data.end_ns)], ["in requests, all processes", timeText(total.busy_ns[0] + total.busy_ns[1])],
    ...(data.waits ? [["waiting for devices (fsync)", data.waits]] : []),
    ...(data.maps ? [["mapped files", data.maps]] : []),
  ]) { const box = made(row, "div"); made(box, "b", value); made(box, "span", what, "quiet"); }
}

// The file of the other run that belongs to this one: of the same path, else of the same place among as many.
function counterpart(file, at, data, other) {
  return other.files.find((each) => each.path === file.path) ?? (other.files.length === data.files.length ? other.files[at] : undefined);
}

async function show() {
  const { runs } = JSON.parse(of("data").textContent), data = runs[0];
  of("title").textContent = data.command.join(" ") || data.source;
  of("source").textContent = runs.map((run) => run.source).join(" beside ");
  const span = Math.max(...runs.map((run) => run.end_ns));
  for (const run of runs) {
    for (const note of run.notes) made(of("notes"), "li", runs.length > 1 ? `${run.source}: ${note}` : note);
    if (runs.length > 1) made(of("figures"), "p", run.source, "quiet");
    tellFigures(run);
  }
  places(of("findings"), runs).forEach((place, i) => tellFindings(place, runs[i]));
  for (const [i, place] of places(of("timeline"), runs).entries()) { tellPhases(place, runs[i]); await timelinePicture(place, runs[i], { span }); }
  if (runs.some((run) => run.targets.length)) {
    of("targets").hidden = false;
    for (const [i, place] of places(of("targets"), runs).entries()) {
      for (const load of runs[i].targets) {
        made(place, "p", tellLoad(load, runs[i].span_ns), "quiet");
        await loadPicture(place, runs[i], load, { span });
      }
      if (!runs[i].targets.length) made(place, "p", "not on a store, or its layouts are not known", "quiet");
    }
  }
  for (const [i, place] of places(of("distributions"), runs).entries()) {
    const total = runs[i].total, pair = made(place, "div", undefined, "pair");
    const all = (what) => runs.flatMap((run) => run.total[what]), lows = runs.map((run) => run.total.latency_low_ns).reduce((a, b) => (b.length > a.length ? b : a));
    bars(pair, "size", (bucket) => (bucket ? 2 ** (bucket - 1) : 0), total.size, bytesText, all("size"));
    if (total.busy_ns[0] + total.busy_ns[1]) bars(pair, "time of a request", (bucket) => lows[bucket] ?? 0, total.latency, (ns) => timeText(Number(ns.toPrecision(2))), all("latency"));
  }
  for (const [number, file] of data.files.entries()) {
    if (!file.heat) continue;
    const part = made(of("files"), "section");
    made(part, "h3", file.path);
    const files = runs.map((run, i) => (i ? counterpart(file, number, data, run) : file)), extent = Math.max(1, ...files.map((each) => each?.extent ?? 0));
    for (const [i, place] of places(part, runs).entries()) {
      const each = files[i];
      if (!each?.heat) { made(place, "p", "not in this run, or without a picture", "quiet"); continue; }
      const list = made(place, "ul", undefined, "patterns");
      for (const pattern of each.patterns ?? []) made(list, "li", pattern.sentence);
      for (const layer of each.layers ?? []) made(list, "li", layer);
      if (each.single || each.raster) await placesPicture(place, runs[i], each, { span, extent });
      await heatPicture(place, each, { extent });
    }
  }
  for (const run of runs) {
    made(of("files"), "h3", runs.length > 1 ? `all files of ${run.source}` : "all files");
    filled(of("files"), ["file", "reads", "writes", "read", "written", "furthest byte", "in requests"], run.files.map((each) => [
      each.path, ...each.requests.map(countText), ...each.bytes.map(bytesText), bytesText(each.extent), timeText(each.busy_ns[0] + each.busy_ns[1]),
    ]));
  }
  document.body.dataset.ready = "yes";
}

function themed(name) {
  document.documentElement.dataset.theme = name;
  document.getElementById("theme").textContent = name === "dark" ? "light" : "dark";
  for (const view of views) view.redraw();
  for (const draw of charts) draw();
}

document.getElementById("theme").addEventListener("click", () => themed(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
document.getElementById("help").addEventListener("click", (event) => {
  const keys = document.getElementById("keys");
  keys.hidden = !keys.hidden;
  event.currentTarget.setAttribute("aria-expanded", String(!keys.hidden));
});
themed(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => themed(event.matches ? "dark" : "light"));
show();
