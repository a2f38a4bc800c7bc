// Keeps a page up to date by server-sent events. Everything works without it; then a page is loaded anew to see more.
"use strict";

const byId = (id) => document.getElementById(id);

// Says above all else on the page that it does not go on by itself any more.
function stale(why) {
  const said = byId("stale") || document.createElement("p");
  const link = document.createElement("a");
  said.id = "stale";
  said.className = "news";
  said.setAttribute("role", "alert");
  link.href = location.href;
  link.textContent = "Load it anew";
  byId("main").prepend(said);
  said.replaceChildren(why + " ", link);
}

// Listens while the page is in front: a browser has few connections to one server, and all its pages share them.
function listen(address, handlers) {
  let source = null;
  let over = false;

  function end() {
    over = true;
    source.close();
    if (handlers.left) handlers.left();
  }

  function open() {
    let lost = false;
    source = new EventSource(address());
    for (const [name, handle] of Object.entries(handlers.on)) source.addEventListener(name, handle);
    source.addEventListener("end", end);
    source.addEventListener("gone", () => {
      end();
      stale("You are logged out.");
    });
    source.addEventListener("error", () => {
      lost = true;
      if (source.readyState !== EventSource.CLOSED) return; // the browser asks again by itself
      end();
      stale("This page is kept up to date no longer.");
    });
    source.addEventListener("open", () => {
      if (lost && handlers.back) handlers.back();
      lost = false;
    });
  }

  document.addEventListener("visibilitychange", () => {
    if (over) return;
    if (document.hidden && source) {
      source.close();
      source = null;
      if (handlers.left) handlers.left();
    } else if (!document.hidden && !source) {
      open();
      if (handlers.back) handlers.back();
    }
  });
  if (!document.hidden) open();
}

function followRun(element) {
  const shown = new Map(); // by place, what stands there: what has not changed is left alone
  let said = byId("standing").querySelector(".status").textContent;
  const texts = new Map(); // what is being written, by who writes it and what kind of text it is
  let [path, next] = element.dataset.live.split("?from=");

  const forget = (firing) => {
    for (const [key, one] of texts) {
      if (firing !== null && one.firing !== firing) continue;
      one.piece.remove();
      texts.delete(key);
    }
    byId("streamed").hidden = texts.size === 0;
  };

  const event = (message) => {
    next = Number(message.lastEventId) + 1;
    if (byId("event-" + message.lastEventId)) return;
    const holder = document.createElement("template");
    holder.innerHTML = message.data; // made by the server, with all that others have written escaped
    const over = holder.content.firstElementChild.dataset.over;
    if (over !== undefined) forget(over);
    byId("events").append(holder.content);
  };

  const put = (name) => (message) => {
    const place = byId(name);
    const holder = document.createElement("template");
    holder.innerHTML = message.data; // made by the server, as above
    if (holder.innerHTML === shown.get(name)) return;
    if (place.contains(document.activeElement) && place !== document.activeElement) return; // nobody loses their place
    shown.set(name, holder.innerHTML);
    place.replaceChildren(holder.content);
    const now = byId("standing").querySelector(".status").textContent;
    if (now !== said) element.textContent = "The run is " + now + ".";
    said = now;
  };

  const delta = (message) => {
    const { firing, kind, text } = JSON.parse(message.data);
    const key = firing + "\n" + kind;
    if (!texts.has(key)) {
      const piece = document.createElement("div");
      const name = document.createElement("p");
      name.className = "meta";
      name.textContent = firing + (kind === "text" ? "" : ", " + kind);
      const words = document.createElement("pre");
      words.className = "value prose";
      piece.append(name, words);
      byId("texts").append(piece);
      texts.set(key, { firing, piece, words });
    }
    texts.get(key).words.textContent += text;
    byId("streamed").hidden = false;
  };

  const on = { event, delta, standing: put("standing"), outcome: put("outcome"), drawing: put("drawing"), receipt: put("receipt-place") };
  listen(() => path + "?from=" + next, { on, left: () => forget(null) });
}

function followChanges(element) {
  const changed = async () => {
    const list = byId("list");
    if (list && !list.contains(document.activeElement)) {
      const answer = await fetch(location.href, { redirect: "error" }).catch(() => null); // nobody is logged in
      const html = answer && answer.ok ? await answer.text() : "";
      const fresh = new DOMParser().parseFromString(html, "text/html").getElementById("list");
      if (fresh) {
        if (fresh.textContent === list.textContent) return;
        list.replaceChildren(...fresh.childNodes);
        element.textContent = "The list was brought up to date.";
        return;
      }
    }
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Load it anew";
    element.replaceChildren((element.dataset.said || "The list has changed.") + " ", link);
  };

  listen(() => element.dataset.changes, { on: { changed }, back: () => byId("list") && changed() });
}

const run = document.querySelector("[data-live]");
if (run) followRun(run);
const changes = document.querySelector("[data-changes]");
if (changes) followChanges(changes);
