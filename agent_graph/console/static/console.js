// Keeps a page up to date by server-sent events. Everything works without it; then a page is loaded anew to see more.
"use strict";

const byId = (id) => document.getElementById(id);

function followRun(element) {
  const source = new EventSource(element.dataset.live);
  const texts = new Map();

  const forget = (firing) => {
    for (const [key, one] of texts) {
      if (firing !== null && one.firing !== firing) continue;
      one.piece.remove();
      texts.delete(key);
    }
    byId("streamed").hidden = texts.size === 0;
  };

  source.addEventListener("event", (message) => {
    if (document.getElementById("event-" + message.lastEventId)) return;
    const holder = document.createElement("template");
    holder.innerHTML = message.data; // made by the server, with all that others have written escaped
    const over = holder.content.firstElementChild.dataset.over;
    if (over !== undefined) forget(over);
    byId("events").append(holder.content);
  });
  source.addEventListener("standing", (message) => {
    const standing = byId("standing");
    const before = standing.querySelector(".status");
    const said = before ? before.textContent : "";
    if (!standing.contains(document.activeElement)) standing.innerHTML = message.data;
    const after = standing.querySelector(".status");
    if (after && after.textContent !== said) element.textContent = "The run is " + after.textContent + ".";
  });
  source.addEventListener("drawing", (message) => {
    byId("drawing").innerHTML = message.data;
  });
  source.addEventListener("delta", (message) => {
    const delta = JSON.parse(message.data);
    const key = delta.firing + "\n" + delta.kind;
    if (!texts.has(key)) {
      const piece = document.createElement("div");
      const name = document.createElement("p");
      name.className = "meta";
      name.textContent = delta.firing + (delta.kind === "text" ? "" : ", " + delta.kind);
      const text = document.createElement("pre");
      text.className = "value";
      piece.append(name, text);
      byId("texts").append(piece);
      texts.set(key, { firing: delta.firing, piece, text });
    }
    texts.get(key).text.textContent += delta.text;
    byId("streamed").hidden = false;
  });
  source.addEventListener("end", () => {
    source.close();
    forget(null);
  });
}

function followChanges(element) {
  const source = new EventSource(element.dataset.changes);
  source.addEventListener("changed", async () => {
    const list = byId("list");
    if (list && !list.contains(document.activeElement)) {
      const answer = await fetch(location.href, { redirect: "error" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("list");
      if (answer.ok && fresh) {
        list.replaceChildren(...fresh.childNodes);
        element.textContent = "The list was brought up to date.";
        return;
      }
    }
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Load it anew";
    element.replaceChildren((element.dataset.said || "The list has changed.") + " ", link);
  });
  source.addEventListener("end", () => source.close());
}

const run = document.querySelector("[data-live]");
if (run) followRun(run);
const changes = document.querySelector("[data-changes]");
if (changes) followChanges(changes);
