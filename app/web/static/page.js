"use strict";

// Which source is shown, how it fares, and what the page changes of it.

const FIGURES = [
  ["Frames per second", (s) => s.fps.toFixed(1)],
  ["Tokens per second", (s) => Math.round(s.tokens_per_second).toLocaleString("en")],
  ["Latency, p50", (s) => milliseconds(s.latency_p50)],
  ["Latency, p99", (s) => milliseconds(s.latency_p99)],
  ["Tiles changed", (s) => (s.changed === null ? "–" : `${(100 * s.changed).toFixed(0)} %`)],
  ["Tokens ahead of the average", (s) => s.debt?.toLocaleString("en")], // with a budget on average
  ["Received", (s) => s.received.toLocaleString("en")],
  ["Dropped", (s) => s.dropped.toLocaleString("en")],
  ["Skipped", (s) => s.skipped.toLocaleString("en")],
  ["Connections", (s) => s.connections.toLocaleString("en")],
];

const TENTHS = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
const milliseconds = (seconds) => `${(1000 * seconds).toLocaleString("en", TENTHS)} ms`;
const WALL = "wall"; // what is chosen where all sources are shown

let chosen = chosenBefore(); // the number of the source that is shown, or WALL
const touched = { asking: false, controls: false }; // the user is editing that form
let answered = 0; // wishes so far
let pending = 0; // wishes that are on their way

// The address keeps the choice over a reload: #2 is source 2.
function chosenBefore() {
  const said = location.hash.slice(1);
  return said === WALL ? WALL : /^\d+$/.test(said) ? Number(said) : 0;
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
    answer.textContent = reply.ok ? "Applied." : (await reply.text()).trim();
    if (reply.ok) showNotes(await reply.json());
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

// What was not understood of the query: the rest of it counts.
function showNotes(source) {
  const text = source.query_notes.join("\n");
  if (find("query-notes").textContent !== text) find("query-notes").textContent = text;
}

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
    if (reply.status === 401) return lost("this page needs its access token: open it with ?token=... again");
    if (!reply.ok) throw new Error(reply.statusText);
    const { sources, token_colours } = await reply.json();
    colours = token_colours;
    remember(sources);
    if (before === answered && !pending) show(sources); // else it may tell of the time before that wish
  } catch (error) {
    lost("Foveate cannot be reached");
  }
}

function lost(reason) {
  tell("closed", reason);
  veil(`${reason}. The picture is an old one.`);
  find("lost").hidden = chosen !== WALL;
  find("lost").textContent = `${reason}. The pictures are old ones.`;
}

function show(sources) {
  if (chosen !== WALL && chosen >= sources.length) return choose(0); // another Foveate answers now
  showTabs(sources);
  find("lost").hidden = true;
  if (chosen === WALL) fillWall(sources, choose);
  else showOne(sources[chosen]);
}

function showTabs(sources) {
  const list = find("sources");
  const names = namesOf(sources);
  if (sources.length > 1) names.push("All sources");
  if ([...list.children].map((item) => item.textContent).join("\n") !== names.join("\n")) {
    list.replaceChildren(...names.map((name, i) => tab(name, i < sources.length ? i : WALL)));
  }
  [...list.children].forEach((item, i) => {
    const button = item.firstChild;
    button.setAttribute("aria-current", String((i < sources.length ? i : WALL) === chosen));
    if (i >= sources.length) return;
    button.firstChild.dataset.state = sources[i].state;
    button.title = `${sources[i].name}: ${sources[i].state}`;
  });
}

// Without what all have in common up to a slash, which would leave no room for where they differ.
function namesOf(sources) {
  const names = sources.map((source) => source.name.replace(/^[a-z]+:\/\//, ""));
  if (names.length < 2) return names;
  let shared = names[0].slice(0, names[0].lastIndexOf("/") + 1);
  while (!names.every((name) => name.startsWith(shared))) {
    shared = shared.slice(0, shared.slice(0, -1).lastIndexOf("/") + 1);
  }
  return names.map((name) => name.slice(shared.length) || name);
}

function figuresOf(source) {
  const known = FIGURES.map(([name, value]) => [name, value(source)]).filter(([, text]) => text !== undefined);
  return known.flatMap(([name, text]) => [element("dt", name), element("dd", text)]);
}

function showOne(source) {
  tell(source.state, `${source.name}: ${source.state}${source.reason ? ` – ${source.reason}` : ""}`);
  veil(source.paused ? "Paused." : source.state === "streaming" ? "" : `No new pictures: ${source.state}.`);
  find("figures").replaceChildren(...figuresOf(source));
  const pause = find("pause");
  pause.setAttribute("aria-pressed", String(source.paused));
  pause.textContent = source.paused ? "Resume" : "Pause";
  const words = source.encoder === "attributes" ? "Colours, dark, bright, moving, still, text, places, sizes. " : "";
  const help = `${words}Commas between several; a minus sign before what to look away from; empty for none.`;
  if (find("query-help").textContent !== help) find("query-help").textContent = help;
  offer("asking", "query", source.query.join(", "));
  offer("controls", "budget", source.budget);
  offer("controls", "keyframe_interval", source.keyframe_interval);
  if (String(source.gaze) !== String(gaze)) mark(source.gaze);
  find("asked").hidden = source.query.length === 0;
  find("asked").textContent = `Looking for: ${source.query.join(", ")}`;
  showNotes(source);
  drawHistory(source);
}

function offer(form, id, value) {
  const field = find(id);
  if (!touched[form] && field !== document.activeElement) field.value = value; // nobody is about to type there
}

function tab(name, number) {
  const item = element("li");
  const button = element("button");
  button.type = "button";
  if (number !== WALL) {
    const dot = element("span");
    dot.className = "dot";
    button.append(dot);
  }
  button.append(name);
  button.addEventListener("click", () => choose(number));
  item.append(button);
  return item;
}

function choose(number) {
  chosen = number;
  history.replaceState(null, "", `#${number}`);
  mark(null);
  touched.asking = touched.controls = false;
  for (const id of ["query-answer", "query-notes", "answer"]) find(id).textContent = "";
  begin();
  refresh();
}

function begin() {
  find("wall").hidden = chosen !== WALL;
  find("one").hidden = chosen === WALL;
  unwatch();
  if (chosen === WALL) return hang();
  takeDown();
  watch(chosen);
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
find("show-reader").addEventListener("change", draw);

async function poll() {
  await refresh();
  setTimeout(poll, 1000);
}

begin();
poll();
