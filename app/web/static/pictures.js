"use strict";

// The picture of the chosen source with its tokens and score, and what the model sees beside it.

const find = (id) => document.getElementById(id);
const canvas = find("picture");
const pen = canvas.getContext("2d");
const reader = find("reader");
const readerPen = reader.getContext("2d");
const decoder = new TextDecoder();

let connection = null; // ends the stream of the pictures
let gaze = null; // [x, y] in the frame's pixels, the latest that anybody asked for
let last = null; // the latest record, with the bitmaps of the frame and of what the model sees
let colours = []; // of a token's outline, by its LOD; the last one is that of all coarser ones too

// Yields [record, JPEG of the frame, JPEG of what the model sees].
async function* messages(number, signal) {
  const source = (await fetch(`/frames/${number}`, { signal })).body.getReader();
  let held = new Uint8Array(0);
  for (;;) {
    const { value, done } = await source.read();
    if (done) return;
    const joined = new Uint8Array(held.length + value.length);
    joined.set(held);
    joined.set(value, held.length);
    held = joined;
    for (;;) {
      if (held.length < 12) break;
      const sizes = new DataView(held.buffer, held.byteOffset);
      const ends = [12];
      for (let part = 0; part < 3; part++) ends.push(ends[part] + sizes.getUint32(4 * part));
      if (held.length < ends[3]) break;
      yield [JSON.parse(decoder.decode(held.subarray(12, ends[1]))), held.slice(ends[1], ends[2]), held.slice(ends[2], ends[3])];
      held = held.subarray(ends[3]);
    }
  }
}

const decoded = (jpeg) => createImageBitmap(new Blob([jpeg], { type: "image/jpeg" }));

async function watch(number) {
  const mine = new AbortController();
  if (connection) connection.abort();
  connection = mine;
  while (!mine.signal.aborted) {
    try {
      for await (const [record, ...jpegs] of messages(number, mine.signal)) {
        const [bitmap, seen] = await Promise.all(jpegs.map(decoded));
        if (mine.signal.aborted) return;
        release();
        last = { record, bitmap, seen };
        draw();
      }
    } catch (error) {
      if (mine.signal.aborted) return;
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function unwatch() {
  if (connection) connection.abort();
  connection = null;
  forget();
}

function release() {
  if (last) [last.bitmap, last.seen].forEach((bitmap) => bitmap.close());
}

function forget() { // one source's picture under another's name would mislead
  release();
  last = null;
  for (const surface of [canvas, reader]) surface.getContext("2d").clearRect(0, 0, surface.width, surface.height);
  delete canvas.dataset.index;
  delete canvas.dataset.tokens;
  find("reader-caption").textContent = "";
  find("legend").replaceChildren();
}

function fit(surface, bitmap) {
  if (surface.width === bitmap.width && surface.height === bitmap.height) return;
  surface.width = bitmap.width;
  surface.height = bitmap.height;
}

function draw() {
  if (!last) return;
  const { record, bitmap, seen } = last;
  fit(canvas, bitmap);
  const scale = bitmap.width / record.source_width;
  pen.globalAlpha = 1;
  pen.drawImage(bitmap, 0, 0);
  if (find("show-tokens").checked) dimRest(record, bitmap, scale);
  if (find("show-heat").checked) drawHeat(record, scale);
  if (find("show-tokens").checked) drawTokens(record, scale);
  if (gaze) drawGaze(scale);
  canvas.dataset.index = record.index;
  canvas.dataset.tokens = record.x.length;
  find("reader-panel").hidden = !find("show-reader").checked;
  fit(reader, seen);
  readerPen.drawImage(seen, 0, 0);
  const quality = record.psnr === null ? "exactly the frame" : `PSNR ${record.psnr.toFixed(1)} dB`;
  find("reader-caption").textContent = `What the model sees: ${quality}`;
  explain(record);
}

const coarsest = (record) => record.lod.reduce((most, lod) => Math.max(most, lod), 0);
const colourOf = (lod) => colours[Math.min(lod, colours.length - 1)];

function explain(record) {
  const counts = Array(Math.max(colours.length, coarsest(record) + 1)).fill(0);
  record.lod.forEach((lod) => { counts[lod] += 1; });
  find("legend").replaceChildren(...counts.map((count, lod) => {
    const item = element("li");
    const chip = element("span");
    chip.style.background = colourOf(lod);
    item.append(chip, `${16 * 2 ** lod} px: ${count}`);
    return item;
  }));
}

// Where there is no token, the picture is dark, as in the overlay.
function dimRest(record, bitmap, scale) {
  pen.fillStyle = "#0009";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  record.x.forEach((x, i) => {
    const side = 16 * 2 ** record.lod[i];
    const left = Math.max(0, Math.round((x - side / 2) * scale));
    const top = Math.max(0, Math.round((record.y[i] - side / 2) * scale));
    const width = Math.min(canvas.width - left, Math.round(side * scale));
    const height = Math.min(canvas.height - top, Math.round(side * scale));
    if (width > 0 && height > 0) pen.drawImage(bitmap, left, top, width, height, left, top, width, height);
  });
}

function drawTokens(record, scale) {
  pen.lineWidth = 1;
  for (let lod = coarsest(record); lod >= 0; lod--) {
    const side = 16 * 2 ** lod;
    pen.strokeStyle = colourOf(lod);
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

function element(name, text = "") {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
