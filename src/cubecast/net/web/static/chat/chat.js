/** A chat in the browser. It talks to everybody who uses the same topic: other browsers, and `examples/chat.py`. */

import { connect, Gap } from "../cubecast.js";
import { Log } from "./log.js";

const element = (id) => document.getElementById(id);

/** @typedef {import("../cubecast.js").Client} Client */

function showState(state, text) {
  const shown = element("state");
  shown.dataset.state = state;
  shown.textContent = text;
}

/** @param {Client} client */
function follow(client) {
  const words = {
    connected: () => `connected to node ${client.node?.node}`,
    looking: () => "connection lost, looking for the node",
    closed: () => "not connected",
  };
  const update = () => showState(client.state, words[client.state]());
  client.addEventListener("state", update);
  update();
}

/** @param {import("../cubecast.js").Subscription} heard @param {Log} log */
async function read(heard, log) {
  try {
    for await (const event of heard) {
      if (event instanceof Gap) log.gap(event);
      else show(event, log);
    }
    log.notice("the conversation is over");
  } catch (error) {
    log.notice(error.message);
  }
}

/**
 * Anybody may publish anything here: what cannot be read is said, and the conversation goes on.
 * @param {import("../cubecast.js").Message} message @param {Log} log
 */
function show(message, log) {
  try {
    log.message(message);
  } catch (error) {
    log.notice(`something that cannot be read: ${error.message}`);
  }
}

/** @param {Client} client @param {string} room @param {Log} log */
function listen(client, room, log) {
  element("say").addEventListener("submit", async (submitted) => {
    submitted.preventDefault();
    const text = element("text").value.trim();
    if (!text) return;
    element("text").value = "";
    const [headers, key] = log.sending();
    try {
      await client.publish(room, text, { headers, wait: "stable" });
      log.reached(key);
    } catch (error) {
      log.failed(key, text, error);
    }
  });
}

async function enter(name, room, token) {
  const client = await connect("./ws", { name, token: token || undefined });
  const heard = client.subscribe(room);
  try {
    await heard.ready;
  } catch (error) {
    await client.close();
    throw error;
  }
  follow(client);
  element("enter").hidden = true;
  element("log").hidden = element("say").hidden = false;
  element("room-name").textContent = room;
  const log = new Log(element("log"), name);
  log.notice("from here on you see everything", true);
  listen(client, room, log);
  read(heard, log);
  element("text").focus();
  addEventListener("pagehide", () => client.close());
  addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
}

element("enter").addEventListener("submit", async (submitted) => {
  submitted.preventDefault();
  const [name, room, token] = ["name", "room", "token"].map((id) => element(id).value.trim());
  element("trouble").hidden = true;
  showState("looking", "connecting");
  try {
    await enter(name, room, token);
  } catch (error) {
    showState("closed", "not connected");
    element("trouble").textContent = error.message;
    element("trouble").hidden = false;
  }
});
