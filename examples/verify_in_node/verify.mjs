// Checks receipts of agent-graph by docs/reference/receipt.md alone: node verify.mjs [--key FILE] [--public FILE] RECEIPT...
import { createHash, createHmac, createPublicKey, timingSafeEqual, verify } from "node:crypto";
import { readFileSync } from "node:fs";

const sha = (data) => createHash("sha256").update(data).digest("hex");
// Integers keep all their digits (as BigInt), and names such as "10" and "__proto__" stay what they are.
const parse = (text) => JSON.parse((JSON.parse(text), text).replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/gs, (token) =>
  token[0] === '"' ? `"s${token.slice(1)}` : /[.eE]/.test(token) ? token : `"i${token}"`), (_, value) => {
  if (typeof value === "string") return value[0] === "i" ? BigInt(value.slice(1)) : value.slice(1);
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.assign(Object.create(null), Object.fromEntries(Object.entries(value).map(([k, v]) => [k.slice(1), v])));
});
const canonical = (value) => {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value && typeof value === "object")
    return `{${Object.keys(value).sort().map((name) => `${canonical(name)}:${canonical(value[name])}`).join(",")}}`;
  if (value === undefined || (typeof value === "string" ? !value.isWellFormed() : typeof value === "number" && !isFinite(value)))
    throw new Error("there is no canonical form of it");
  return JSON.stringify(value);
};
const digest = (value) => "sha256:" + sha(canonical(value));
const leafHash = (leaf) => sha("\0" + canonical(leaf));
const rootOf = (hashes) => {
  if (hashes.length < 2) return hashes[0] ?? sha("");
  let left = 1;
  while (left * 2 < hashes.length) left *= 2;
  return sha(Buffer.from("01" + rootOf(hashes.slice(0, left)) + rootOf(hashes.slice(left)), "hex"));
};

// Whoever calls says which kind a key is, never the receipt: a public half taken for the secret of an HMAC lets anyone forge.
const publicKey = (bytes) => {
  const raw = Buffer.from(bytes.toString("latin1").trim(), "hex");
  const key = createPublicKey({ key: Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]), format: "der", type: "spki" });
  const fits = (data, seal) => /^ed25519:[0-9a-f]{128}$/.test(seal) && verify(null, data, key, Buffer.from(seal.slice(8), "hex"));
  return { id: "ed25519:" + sha(raw).slice(0, 16), fits };
};
const macKey = (bytes) => {
  if (bytes.length < 32) throw new Error("a key has at least 32 bytes");
  const mac = (data) => createHmac("sha256", bytes).update(data).digest("hex");
  const fits = (data, seal) => /^hmac-sha256:[0-9a-f]{64}$/.test(seal) && timingSafeEqual(Buffer.from(seal.slice(12)), Buffer.from(mac(data)));
  return { id: "hmac:" + mac("agent-graph key id").slice(0, 16), fits };
};

const firstDifference = (one, other) => {
  let at = 0;
  while (at < Math.max(one.length, other.length) && one[at] === other[at]) at++;
  return at;
};
function* eventFaults(events, chain) {
  const rows = events.map((event, at) => {
    const body = typeof event === "string" ? parse(event) : event;
    if (typeof event === "string" && canonical(body) !== event) return {};
    return { seq: Number(body.seq ?? -1), prev: body.prev, hash: typeof event === "string" ? sha(event) : event.hash };
  });
  const odd = rows.findIndex((row, at) => row.seq !== at);
  if (odd >= 0) return yield `bundle.events[${odd}]`;
  if (BigInt(rows.length) !== chain.events) return yield `bundle.events[${Math.min(rows.length, Number(chain.events))}]`;
  const fits = (at) => (at < rows.length ? rows[at].prev : chain.head.slice(7)) === (at ? rows[at - 1].hash : "0".repeat(64));
  for (let at = 0; at <= rows.length; at++)
    if (!fits(at)) return yield `bundle.events[${at === 0 || (at < rows.length && !fits(at + 1)) ? at : at - 1}]`;
}
const INTEGRITY = ["verified", "digest", "members", "leaves", "key_id", "seal", "bundle_digest"];
const only = (object, names) => Object.keys(object).every((name) => names.includes(name));

function* faultsOf(text, keys) {
  const file = parse(text);
  if (canonical(file) !== text.replace(/\n$/, "")) return yield "file: not canonical JSON";
  if (file.payloadType) return yield* envelopeFaults(file, keys);
  const { receipt, integrity, bundle } = file;
  if (!receipt || !integrity || !only(file, ["receipt", "integrity", "bundle"])) return yield "file: other members";
  if (receipt.kind !== "agent-graph-receipt-v1") return yield "receipt.kind";
  if (integrity.verified !== true || !only(integrity, INTEGRITY)) return yield "integrity";
  for (const name of ["key_id", "seal"]) if (typeof integrity[name] !== "string") return yield `integrity.${name}`;
  if (!bundle !== !integrity.bundle_digest) return yield bundle ? "integrity.bundle_digest" : "bundle";
  const found = receiptFaults(receipt, integrity);
  if (!found.length && bundle) found.push(...bundleFaults(bundle, receipt, integrity));
  if (!found.length) found.push(...sealFaults(receipt, integrity.key_id, canonical(receipt), integrity.seal, keys, "integrity"));
  yield* found;
}
function receiptFaults(receipt, integrity) {
  const { leaves, ...members } = receipt, whole = digest(receipt) === integrity.digest, found = [];
  for (const name of new Set([...Object.keys(members), ...Object.keys(integrity.members)]))
    if (!(name in members) || digest(members[name]) !== integrity.members[name])
      found.push(`${whole ? "integrity.members" : "receipt"}.${name}`);
  const hashes = leaves.map(leafHash), at = firstDifference(hashes, integrity.leaves), path = leaves[at]?.node_path;
  const rooted = "sha256:" + rootOf(hashes) === receipt.merkle.root && BigInt(hashes.length) === receipt.merkle.leaves;
  if (at < Math.max(hashes.length, integrity.leaves.length))
    found.push(rooted ? `integrity.leaves[${at}]` : `receipt.leaves[${at}]${path ? ` (${path})` : ""}`);
  else if (!rooted) found.push("receipt.merkle");
  return whole || found.length ? found : ["integrity.digest"];
}
function* bundleFaults(bundle, receipt, integrity) {
  if (bundle.kind !== "agent-graph-bundle-v1" || !only(bundle, ["kind", "receipt", "graphs", "events"])) return yield "bundle";
  if (bundle.receipt !== integrity.digest) yield "bundle.receipt";
  yield* eventFaults(bundle.events, receipt.chain);
  const versions = [receipt.graph.graph_version, ...receipt.graph.subgraphs.map((each) => each.graph_version)];
  for (let at = 0; at < Math.max(versions.length, bundle.graphs.length); at++)
    if (bundle.graphs[at] !== null && (bundle.graphs[at] === undefined || "sha256:" + sha(bundle.graphs[at]) !== versions[at]))
      yield `bundle.graphs[${at}]`;
  if (digest(bundle) !== integrity.bundle_digest) yield "integrity.bundle_digest";
}
function* sealFaults(receipt, keyId, data, seal, keys, place) {
  if (!keys.length) return;
  const { chain, run_id, status, sealed } = receipt, { sealed_at_ms, late } = sealed;
  const kind = late ? "agent-graph-late-seal-v1" : "agent-graph-seal-v1";
  const end = canonical({ events: chain.events, head: chain.head, kind, run_id, sealed_at_ms, status });
  const holds = (id, bytes, text) => keys.some((key) => key.id === id && key.fits(Buffer.from(bytes), text));
  if (!holds(keyId, data, seal)) yield `${place}.seal`;
  if (!holds(sealed.key_id, end, sealed.seal)) yield "receipt.sealed";
}
function* envelopeFaults({ payloadType, payload, signatures }, keys) {
  const body = Buffer.from(payload, "base64"), { predicate: receipt, predicateType, subject } = parse(body.toString());
  if (payloadType !== "application/vnd.in-toto+json" || predicateType !== "urn:agent-graph:receipt:v1") return yield "envelope";
  const hashes = receipt.leaves.map(leafHash), [{ keyid, sig }] = signatures;
  if ("sha256:" + rootOf(hashes) !== receipt.merkle.root || BigInt(hashes.length) !== receipt.merkle.leaves) yield "receipt.merkle";
  const said = [[`${receipt.run_id}/events`, receipt.chain.head], [`${receipt.run_id}/output`, receipt.output]].filter(([, one]) => one);
  if (canonical(said) !== canonical(subject.map((each) => [each.name, "sha256:" + each.digest.sha256]))) yield "envelope.subject";
  const data = Buffer.concat([Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${body.length} `), body]);
  const kind = keyid.startsWith("hmac:") ? "hmac-sha256:" : "ed25519:";
  yield* sealFaults(receipt, keyid, data, kind + Buffer.from(sig, "base64").toString("hex"), keys, "envelope");
}

export { canonical, digest, leafHash, parse, rootOf };

if (process.argv[1]?.endsWith("verify.mjs")) {
  const words = process.argv.slice(2), keys = [], files = [];
  const kinds = { "--key": macKey, "--public": publicKey };
  for (let word; (word = words.shift()) !== undefined; )
    kinds[word] ? keys.push(kinds[word](readFileSync(words.shift()))) : files.push(word);
  for (const name of files) {
    let faults;
    try {
      faults = [...faultsOf(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(name)), keys)];
    } catch (error) {
      faults = [`file: ${error.message}`];
    }
    const fine = keys.length ? "holds" : "holds; authenticity was not checked: no key was given";
    console.log(`${name}: ${faults.length ? "does not hold: " + faults.join(", ") : fine}`);
    if (faults.length) process.exitCode = 1;
  }
}
