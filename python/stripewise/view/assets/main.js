// The page from its data.

async function show() {
  const data = JSON.parse(document.getElementById("data").textContent), of = (id) => document.getElementById(id), total = data.total;
  of("title").textContent = data.command.join(" ") || data.source;
  of("source").textContent = data.command.length ? data.source : "";
  for (const note of data.notes) made(of("notes"), "li", note);
  const [reads, writes] = total.requests, busy = total.busy_ns[0] + total.busy_ns[1];
  for (const [what, value] of [
    ["requests", countText(reads + writes)], ["read", bytesText(total.bytes[0])], ["written", bytesText(total.bytes[1])], ["files", countText(data.files_in_all)],
    ["processes", countText(data.processes.length)], ["the run", timeText(data.end_ns)], ["in requests, all processes", timeText(busy)],
  ]) { const box = made(of("figures"), "div"); made(box, "b", value); made(box, "span", what, "quiet"); }
  for (const each of data.findings) {
    of("findings").hidden = false;
    const box = made(of("findings"), "div", undefined, "finding");
    made(made(box, "p"), "strong", each.title);
    const list = made(box, "ul");
    for (const line of each.evidence.split("\n")) made(list, "li", line);
    if (each.price) made(box, "p", each.price, "quiet");
    made(box, "p", each.advice);
    if (each.command) made(made(box, "p"), "code", each.command);
  }
  const kinds = { read: "reads", write: "writes", both: "reads and writes" };
  of("phases").textContent = data.phases.slice(0, 12).map((phase) => `${timeText(phase.begin_ns, data.end_ns)} to ${timeText(phase.end_ns, data.end_ns)}: ${kinds[phase.kind]} ${bytesText(phase.read + phase.written)}`).join("; ") + (data.phases.length > 12 ? `; ${data.phases.length - 12} phases more` : "");
  await timelinePicture(of("timeline"), data);
  const pair = of("distributions").querySelector(".pair");
  bars(pair, "size", (bucket) => (bucket ? 2 ** (bucket - 1) : 0), total.size, bytesText);
  if (busy) bars(pair, "time of a request", (bucket) => total.latency_low_ns[bucket] ?? 0, total.latency, (ns) => timeText(Number(ns.toPrecision(2))));
  for (const file of data.files.filter((each) => each.heat)) {
    const part = made(of("files"), "section");
    made(part, "h3", file.path);
    const list = made(part, "ul", undefined, "patterns");
    for (const pattern of file.patterns ?? []) made(list, "li", pattern.sentence);
    if (file.single || file.raster) await placesPicture(part, data, file);
    await heatPicture(part, file);
  }
  made(of("files"), "h3", "all files");
  filled(of("files"), ["file", "reads", "writes", "read", "written", "extent", "in requests"], data.files.map((each) => [
    each.path, ...each.requests.map(countText), ...each.bytes.map(bytesText), bytesText(each.extent), timeText(each.busy_ns[0] + each.busy_ns[1]),
  ]));
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
