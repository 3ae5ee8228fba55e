"use strict";

const COLOURS = ["#ffd166", "#ff9f43", "#ff6b81", "#c77dff", "#5fa8ff"]; // of a token, by its LOD; the last of all above
const FIGURES = [
  ["Frames per second", (s) => s.fps.toFixed(1)],
  ["Tokens per second", (s) => Math.round(s.tokens_per_second).toLocaleString("en")],
  ["Latency, p50", (s) => milliseconds(s.latency_p50)],
  ["Latency, p99", (s) => milliseconds(s.latency_p99)],
  ["Changed", (s) => (s.changed === null ? "–" : `${(100 * s.changed).toFixed(0)} %`)],
  ["Received", (s) => s.received.toLocaleString("en")],
  ["Dropped", (s) => s.dropped.toLocaleString("en")],
  ["Connections", (s) => s.connections.toLocaleString("en")],
];

const find = (id) => document.getElementById(id);
const milliseconds = (seconds) => `${(1000 * seconds).toFixed(1)} ms`;
const canvas = find("picture");
const pen = canvas.getContext("2d");
const decoder = new TextDecoder();

let chosen = 0; // the source that is shown
let connection = null; // ends the stream of its pictures
let gaze = null; // [x, y] in the frame's pixels, the latest that anybody asked for
let last = null; // the latest record and bitmap
const touched = { asking: false, controls: false }; // the user is editing that form
let answered = 0; // wishes so far
let pending = 0; // wishes that are on their way

async function* messages(number, signal) {
  const reader = (await fetch(`/frames/${number}`, { signal })).body.getReader();
  let held = new Uint8Array(0);
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const joined = new Uint8Array(held.length + value.length);
    joined.set(held);
    joined.set(value, held.length);
    held = joined;
    for (;;) {
      if (held.length < 8) break;
      const sizes = new DataView(held.buffer, held.byteOffset);
      const text = sizes.getUint32(0);
      const end = 8 + text + sizes.getUint32(4);
      if (held.length < end) break;
      yield [JSON.parse(decoder.decode(held.subarray(8, 8 + text))), held.slice(8 + text, end)];
      held = held.subarray(end);
    }
  }
}

async function watch(number) {
  const mine = new AbortController();
  if (connection) connection.abort();
  connection = mine;
  while (!mine.signal.aborted) {
    try {
      for await (const [record, jpeg] of messages(number, mine.signal)) {
        const bitmap = await createImageBitmap(new Blob([jpeg], { type: "image/jpeg" }));
        if (mine.signal.aborted) return;
        if (last) last.bitmap.close();
        last = { record, bitmap };
        draw();
      }
    } catch (error) {
      if (mine.signal.aborted) return;
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function draw() {
  if (!last) return;
  const { record, bitmap } = last;
  if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
  }
  const scale = bitmap.width / record.source_width;
  pen.globalAlpha = 1;
  pen.drawImage(bitmap, 0, 0);
  if (find("show-heat").checked) drawHeat(record, scale);
  if (find("show-tokens").checked) drawTokens(record, scale);
  if (gaze) drawGaze(scale);
  canvas.dataset.index = record.index;
  canvas.dataset.tokens = record.x.length;
}

function drawTokens(record, scale) {
  pen.lineWidth = 1;
  for (const lod of [...new Set(record.lod)].sort((one, other) => other - one)) {
    const side = 16 * 2 ** lod;
    pen.strokeStyle = COLOURS[Math.min(lod, COLOURS.length - 1)];
    pen.beginPath();
    record.lod.forEach((own, i) => {
      if (own !== lod) return;
      const left = Math.round((record.x[i] - side / 2) * scale);
      const top = Math.round((record.y[i] - side / 2) * scale);
      pen.rect(left + 0.5, top + 0.5, Math.round(side * scale) - 1, Math.round(side * scale) - 1);
    });
    pen.stroke();
  }
}

function drawHeat(record, scale) {
  const width = record.heat_width;
  const height = record.heat.length / width;
  const map = new OffscreenCanvas(width, height);
  const pixels = new ImageData(width, height);
  const top = record.heat.reduce((most, value) => Math.max(most, value), 1); // too many to be arguments
  record.heat.forEach((value, i) => {
    const share = value / top;
    pixels.data.set([255, 200 * (1 - share), 40, 210 * share], 4 * i);
  });
  map.getContext("2d").putImageData(pixels, 0, 0);
  pen.drawImage(map, 0, 0, width * 16 * scale, height * 16 * scale);
}

function drawGaze(scale) {
  const [x, y] = gaze.map((value) => value * scale);
  for (const [colour, width] of [["#000", 5], ["#fff", 2]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    pen.arc(x, y, 12, 0, 2 * Math.PI);
    pen.moveTo(x - 18, y);
    pen.lineTo(x + 18, y);
    pen.moveTo(x, y - 18);
    pen.lineTo(x, y + 18);
    pen.stroke();
  }
}

async function send(wishes, where = "answer") {
  const answer = find(where);
  pending += 1;
  try {
    const reply = await fetch(`/controls/${chosen}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(wishes),
    });
    answered += 1;
    answer.className = reply.ok ? "answer good" : "answer";
    answer.textContent = reply.ok ? ["Applied.", ...notesOn(wishes, await reply.json())].join("\n") : (await reply.text()).trim();
    return reply.ok;
  } catch (error) {
    answer.className = "answer";
    answer.textContent = "Foveate cannot be reached.";
    return false;
  } finally {
    pending -= 1;
  }
}

async function submit(form, wishes, where) {
  touched[form] = !(await send(wishes, where)); // what was refused stays, to be mended
  refresh();
}

const notesOn = (wishes, source) => ("query" in wishes ? source.query_notes : []);
const phrases = (text) => text.split(",").map((phrase) => phrase.trim()).filter((phrase) => phrase !== "");

function look(point) {
  mark(point);
  send({ gaze: point });
}

function mark(point) {
  gaze = point;
  find("clear-gaze").disabled = point === null;
  draw();
}

async function refresh() {
  const before = answered;
  try {
    const reply = await fetch("/status");
    if (reply.status === 401) return lost("Foveate wants its token: open this page with ?token=... once more");
    if (!reply.ok) throw new Error(reply.statusText);
    const { sources } = await reply.json();
    if (before === answered && !pending) show(sources); // else it may tell of the time before that wish
  } catch (error) {
    lost("Foveate cannot be reached");
  }
}

function lost(reason) {
  tell("closed", reason);
  veil(`${reason}. The picture is an old one.`);
}

function show(sources) {
  if (chosen >= sources.length) return choose(0); // another Foveate answers now
  const list = find("sources");
  if (list.children.length !== sources.length) {
    list.replaceChildren(...sources.map((source) => tab(source)));
  }
  sources.forEach((source, i) => {
    const button = list.children[i].firstChild;
    button.setAttribute("aria-current", String(i === chosen));
    button.firstChild.dataset.state = source.state;
    button.title = `${source.name}: ${source.state}`;
  });
  const source = sources[chosen];
  tell(source.state, `${source.name}: ${source.state}${source.reason ? ` – ${source.reason}` : ""}`);
  veil(source.paused ? "Paused." : source.state === "streaming" ? "" : `No new pictures: ${source.state}.`);
  find("figures").replaceChildren(...FIGURES.flatMap(([name, value]) => [element("dt", name), element("dd", value(source))]));
  const pause = find("pause");
  pause.setAttribute("aria-pressed", String(source.paused));
  pause.textContent = source.paused ? "Resume" : "Pause";
  find("asking").hidden = !source.asks;
  const words = source.encoder === "attributes" ? "Colours, dark, bright, moving, still, text, places, sizes. " : "";
  const help = `${words}Commas between several; a minus sign before what to look away from; empty for none.`;
  if (find("query-help").textContent !== help) find("query-help").textContent = help;
  offer("asking", "query", source.query.join(", "));
  offer("controls", "budget", source.budget);
  offer("controls", "keyframe_interval", source.keyframe_interval);
  if (String(source.gaze) !== String(gaze)) mark(source.gaze);
}

function offer(form, id, value) {
  const field = find(id);
  if (!touched[form] && field !== document.activeElement) field.value = value; // nobody is about to type there
}

function tab(source) {
  const item = element("li");
  const button = element("button");
  const dot = element("span");
  dot.className = "dot";
  button.type = "button";
  button.append(dot, `Source ${source.number}`);
  button.addEventListener("click", () => choose(source.number));
  item.append(button);
  return item;
}

function choose(number) {
  chosen = number;
  forget();
  mark(null);
  touched.asking = touched.controls = false;
  find("query-answer").textContent = find("answer").textContent = "";
  watch(number);
  refresh();
}

function forget() { // one source's picture under another's name would mislead
  if (last) last.bitmap.close();
  last = null;
  pen.clearRect(0, 0, canvas.width, canvas.height);
  delete canvas.dataset.index;
  delete canvas.dataset.tokens;
}

function tell(state, text) {
  const line = find("state");
  if (line.textContent !== text) line.textContent = text; // said aloud only when it changes
  line.dataset.state = state;
}

function veil(text) {
  find("veil").hidden = !text;
  find("veil").textContent = text;
}

function element(name, text = "") {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

canvas.addEventListener("click", (event) => {
  if (!last) return;
  const box = canvas.getBoundingClientRect();
  const shown = Math.min(box.width / canvas.width, box.height / canvas.height);
  const left = box.left + (box.width - canvas.width * shown) / 2;
  const top = box.top + (box.height - canvas.height * shown) / 2;
  const scale = last.record.source_width / (canvas.width * shown);
  const point = [(event.clientX - left) * scale, (event.clientY - top) * scale].map(Math.round);
  if (point[0] >= 0 && point[1] >= 0 && point[0] < last.record.source_width && point[1] < last.record.source_height) {
    look(point);
  }
});

canvas.addEventListener("keydown", (event) => {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (event.key === "Escape") look(null);
  if (!(event.key in steps) || !last) return;
  event.preventDefault();
  const size = [last.record.source_width, last.record.source_height];
  const from = gaze || size.map((length) => length / 2);
  look(from.map((value, i) => Math.round(Math.min(size[i] - 1, Math.max(0, value + (steps[event.key][i] * size[i]) / 20)))));
});

for (const form of ["asking", "controls"]) {
  find(form).addEventListener("input", () => { touched[form] = true; });
}
find("asking").addEventListener("submit", (event) => {
  event.preventDefault();
  submit("asking", { query: phrases(find("query").value) }, "query-answer");
});
find("controls").addEventListener("submit", (event) => {
  event.preventDefault();
  const wishes = { budget: find("budget").valueAsNumber, keyframe_interval: find("keyframe_interval").valueAsNumber };
  submit("controls", wishes, "answer");
});
find("pause").addEventListener("click", () => send({ paused: find("pause").getAttribute("aria-pressed") !== "true" }));
find("clear-gaze").addEventListener("click", () => look(null));
find("show-tokens").addEventListener("change", draw);
find("show-heat").addEventListener("change", draw);

async function poll() {
  await refresh();
  setTimeout(poll, 1000);
}

watch(chosen);
poll();
