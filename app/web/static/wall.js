"use strict";

// All sources at once: a still of each with its tokens, fetched one after the other.

const STILL_PAUSE = 1000; // milliseconds between two rounds

let round = null; // ends the fetching of stills

async function hang() {
  const mine = new AbortController();
  takeDown();
  round = mine;
  find("wall").replaceChildren();
  while (!mine.signal.aborted) {
    for (const tile of [...find("wall").children]) {
      try {
        const reply = await fetch(`/stills/${tile.dataset.number}`, { signal: mine.signal });
        if (reply.status === 200) showStill(tile, await reply.blob());
      } catch (error) {
        if (mine.signal.aborted) return;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, STILL_PAUSE));
  }
}

function takeDown() {
  if (round) round.abort();
  round = null;
}

function showStill(tile, blob) {
  const image = tile.querySelector("img");
  const before = image.src;
  image.src = URL.createObjectURL(blob);
  image.hidden = false;
  tile.querySelector(".blank").hidden = true;
  if (before) URL.revokeObjectURL(before);
}

function fillWall(sources, choose) {
  const wall = find("wall");
  if (wall.children.length !== sources.length) wall.replaceChildren(...sources.map((source) => tileOf(source, choose)));
  const names = namesOf(sources);
  sources.forEach((source, i) => {
    const tile = wall.children[i];
    tile.querySelector(".dot").dataset.state = source.state;
    const tokens = Math.round(source.tokens_per_second).toLocaleString("en");
    const figures = `${source.fps.toFixed(1)} fps, ${tokens} tokens/s, ${source.dropped.toLocaleString("en")} dropped`;
    tile.querySelector(".words").textContent = `${names[i]}: ${source.state}. ${figures}`;
    tile.title = source.name;
  });
}

function tileOf(source, choose) {
  const tile = element("button");
  const image = element("img");
  const blank = element("div");
  const text = element("p");
  const dot = element("span");
  const words = element("span");
  tile.type = "button";
  tile.dataset.number = source.number;
  image.alt = `Latest frame of ${source.name}`;
  image.hidden = true;
  blank.className = "blank";
  dot.className = "dot";
  words.className = "words";
  text.append(dot, words);
  tile.append(image, blank, text);
  tile.addEventListener("click", () => choose(source.number));
  return tile;
}
