// A picture on a canvas with two axes: zoom, move, hover, keys and a table behind it.

const MARGIN = { left: 84, right: 14, top: 8, bottom: 26 };
const views = [];

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); }

function made(parent, tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  parent.append(element);
  return element;
}

function filled(parent, head, rows) {
  const scroll = made(parent, "div", undefined, "scroll");
  const table = made(scroll, "table");
  const top = made(made(table, "thead"), "tr");
  for (const each of head) made(top, "th", each);
  const body = made(table, "tbody");
  for (const row of rows) { const line = made(body, "tr"); for (const cell of row) made(line, "td", cell); }
  return scroll;
}

// The button that shows a table in place of many pixels; it is made when it is asked for.
function tableButton(figure, caption, head, rows) {
  const button = made(caption, "button", "table");
  button.type = "button";
  button.setAttribute("aria-expanded", "false");
  let table = null;
  button.addEventListener("click", () => {
    if (table) { table.remove(); table = null; } else table = filled(figure, head, rows());
    button.setAttribute("aria-expanded", String(Boolean(table)));
  });
  return button;
}

class View {
  // picture: label, height, x and y: [end, text(value, span), isBytes], draw(view), hover(view, x, y), legend, table: [head, rows]; toggle: [text, legend]
  // of what is drawn while `isOn`.
  constructor(parent, picture) {
    this.picture = picture;
    this.figure = made(parent, "figure");
    this.canvas = made(this.figure, "canvas", undefined, "view");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", picture.label);
    const caption = made(this.figure, "figcaption");
    for (const [name, kind] of picture.legend) made(caption, "span", name, `key ${kind}`);
    this.isOn = Boolean(picture.toggle);
    if (picture.toggle) this.toggle = this.toggleButton(caption, ...picture.toggle);
    this.button = tableButton(this.figure, caption, ...picture.table);
    this.all();
    this.listen();
    views.push(this);
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
  }

  toggleButton(caption, text, legend) {
    const keys = legend.map(([name, kind]) => made(caption, "span", name, `key ${kind}`)), button = made(caption, "button", text, "toggle");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      this.isOn = !this.isOn;
      button.setAttribute("aria-pressed", String(this.isOn));
      for (const key of keys) key.hidden = !this.isOn;
      this.redraw();
    });
    return button;
  }

  all() { this.x = [0, this.picture.x.end]; this.y = [0, this.picture.y.end]; }

  // The range of an axis about a place of it (0..1), `factor` times as long, kept within the whole.
  zoom(axis, factor, about) {
    const [from, to] = this[axis], whole = this.picture[axis].end;
    const length = Math.min(whole, Math.max((to - from) * factor, Math.min(whole, this.picture[axis].least ?? 8)));
    this.place(axis, from + (to - from) * about - length * about, length);
  }

  place(axis, from, length) {
    const start = Math.max(0, Math.min(from, this.picture[axis].end - length));
    this[axis] = [start, start + length];
    this.redraw();
  }

  move(axis, part) { const [from, to] = this[axis]; this.place(axis, from + (to - from) * part, to - from); }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  paint() {
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth, height = this.picture.height;
    if (!width) return;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.context = this.canvas.getContext("2d");
    this.context.scale(ratio, ratio);
    this.box = { x: MARGIN.left, y: MARGIN.top, w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom };
    const c = this.context, b = this.box;
    c.font = "12px system-ui, sans-serif";
    c.fillStyle = colour("soft");
    c.fillRect(b.x, b.y, b.w, b.h);
    c.save();
    c.beginPath(); c.rect(b.x, b.y, b.w, b.h); c.clip();
    this.picture.draw(this);
    c.restore();
    c.fillStyle = colour("quiet");
    c.strokeStyle = colour("line");
    c.lineWidth = 1;
    c.textBaseline = "top"; c.textAlign = "center";
    for (const at of ticks(...this.x, b.w / 110, this.picture.x.isBytes)) {
      const px = Math.round(this.px(at)) + .5;
      c.beginPath(); c.moveTo(px, b.y + b.h); c.lineTo(px, b.y + b.h + 4); c.stroke();
      c.fillText(this.picture.x.text(at, this.x[1]), Math.min(px, b.x + b.w - 16), b.y + b.h + 8);
    }
    c.textBaseline = "middle"; c.textAlign = "right";
    for (const at of this.picture.y.ticks?.(this) ?? ticks(...this.y, b.h / 40, this.picture.y.isBytes)) {
      const py = Math.round(this.py(at)) + .5;
      c.beginPath(); c.moveTo(b.x - 4, py); c.lineTo(b.x, py); c.stroke();
      c.fillText(this.picture.y.text(at, this.y[1]), b.x - 8, Math.max(py, b.y + 5));
    }
  }

  px(value) { return this.box.x + (value - this.x[0]) / (this.x[1] - this.x[0]) * this.box.w; }
  // Upwards, but for rows of processes, which are read from the top.
  py(value) {
    const part = (value - this.y[0]) / (this.y[1] - this.y[0]);
    return this.box.y + (this.picture.y.isDown ? part : 1 - part) * this.box.h;
  }

  at(event) {
    const place = this.canvas.getBoundingClientRect();
    const x = (event.clientX - place.left - this.box.x) / this.box.w, y = (event.clientY - place.top - this.box.y) / this.box.h;
    return { x, y: this.picture.y.isDown ? y : 1 - y, isInside: x >= 0 && x <= 1 && y >= 0 && y <= 1 };
  }

  value(axis, part) { return this[axis][0] + (this[axis][1] - this[axis][0]) * part; }

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener("wheel", (event) => {
      const at = this.at(event), axis = event.shiftKey ? "y" : "x", amount = event.deltaY || event.deltaX;
      event.preventDefault();
      this.zoom(axis, amount > 0 ? 1.25 : .8, Math.min(1, Math.max(0, at[axis])));
    }, { passive: false });
    let held = null;
    canvas.addEventListener("pointerdown", (event) => { held = this.at(event); canvas.setPointerCapture(event.pointerId); hideTip(); });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { held = null; });
    canvas.addEventListener("pointermove", (event) => {
      const at = this.at(event);
      if (held) { this.move("x", held.x - at.x); if (this.picture.y.isFree) this.move("y", held.y - at.y); held = at; return; }
      const text = at.isInside ? this.picture.hover(this, this.value("x", at.x), this.value("y", at.y)) : null;
      if (text) showTip(text, event.clientX, event.clientY); else hideTip();
    });
    canvas.addEventListener("pointerleave", hideTip);
    canvas.addEventListener("dblclick", () => { this.all(); this.redraw(); });
    canvas.addEventListener("keydown", (event) => {
      const axis = event.shiftKey || event.key === "ArrowUp" || event.key === "ArrowDown" ? "y" : "x";
      const down = this.picture.y.isDown ? 1 : -1;
      const steps = { ArrowLeft: -.1, ArrowRight: .1, ArrowUp: -.1 * down, ArrowDown: .1 * down };
      if (event.key in steps) this.move(axis, steps[event.key]);
      else if (event.key === "+" || event.key === "=" || event.key === "*") this.zoom(axis, .7, .5);
      else if (event.key === "-" || event.key === "_") this.zoom(axis, 1 / .7, .5);
      else if (event.key === "0") { this.all(); this.redraw(); }
      else if (event.key === "t") this.button.click();
      else if (event.key === "r" && this.toggle) this.toggle.click();
      else return;
      event.preventDefault();
    });
  }
}

function showTip(text, x, y) {
  const tip = document.getElementById("tip");
  tip.textContent = text;
  tip.hidden = false;
  const left = Math.min(x + 14, window.innerWidth - tip.offsetWidth - 8), top = y + 18 + tip.offsetHeight > window.innerHeight ? y - tip.offsetHeight - 10 : y + 18;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${top}px`;
}

function hideTip() { document.getElementById("tip").hidden = true; }

// Red, green, blue of a colour as #rrggbb.
function channels(name) { const text = colour(name); return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)); }
