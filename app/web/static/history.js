"use strict";

// Tokens, age and drops of the last two minutes, of each source, asked for once a second.

const REMEMBERED = 120;
const LINES = [
  ["Tokens per second", (now) => now.tokens_per_second, (value) => Math.round(value).toLocaleString("en")],
  ["Age of the latest frame", (now) => now.age, (value) => `${value.toFixed(2)} s`],
  ["Dropped per second", (now, before) => (before ? Math.max(0, now.dropped - before.dropped) : 0), (value) => value.toLocaleString("en")],
];
const past = new Map(); // of a source's number and name: the statuses of the last two minutes, the newest last

const keyOf = (source) => `${source.number} ${source.name}`;

function remember(sources) {
  for (const source of sources) {
    const known = past.get(keyOf(source)) || [];
    known.push(source);
    if (known.length > REMEMBERED + 1) known.shift();
    past.set(keyOf(source), known);
  }
}

function drawHistory(source) {
  const rows = find("history");
  if (!rows.children.length) rows.append(...LINES.map(([name]) => row(name)));
  const known = past.get(keyOf(source)) || [];
  LINES.forEach(([, value, text], i) => {
    const values = known.map((now, at) => value(now, known[at - 1])).slice(-REMEMBERED);
    const [, surface, output] = rows.children[i].children;
    plot(surface, values);
    const newest = values.at(-1);
    output.textContent = newest === null || newest === undefined ? "–" : text(newest);
  });
}

function row(name) {
  const made = element("p");
  made.append(element("b", name), element("canvas"), element("output"));
  return made;
}

function plot(surface, values) {
  surface.width = surface.clientWidth || 300;
  surface.height = surface.clientHeight || 40;
  const ink = surface.getContext("2d");
  const top = Math.max(...values.filter((value) => value !== null), 1e-9);
  ink.strokeStyle = "#6cb4ff";
  ink.lineWidth = 1.5;
  ink.beginPath();
  values.forEach((value, i) => {
    if (value === null) return; // nothing had come yet
    const x = surface.width * (1 - (values.length - 1 - i) / (REMEMBERED - 1));
    const y = 2 + (surface.height - 4) * (1 - value / top);
    if (i && values[i - 1] !== null) ink.lineTo(x, y);
    else ink.moveTo(x, y);
  });
  ink.stroke();
}
