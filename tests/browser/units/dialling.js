import { same, throws } from "./asserting.js";
import { endpoints } from "/client/dialling.js";

export function testAddressesAreWhatPeopleWrite() {
  same(endpoints("/ws"), [`ws://${location.host}/ws`]);
  same(endpoints(["https://example.org", "ws://example.org:1/other"]), [
    "wss://example.org/ws",
    "ws://example.org:1/other",
  ]);
}

export function testTokensDoNotCrossANetworkInTheClear() {
  const token = "ann.secret";
  for (const url of ["ws://localhost/ws", "ws://127.0.0.1:7480/ws", "ws://[::1]:7480/ws", "wss://example.org/ws"]) {
    same(endpoints(url, token), [url]);
  }
  for (const url of ["ws://example.org/ws", "http://10.0.0.1", "ws://127.0.0.1.example.org/ws"]) {
    throws("BadInput", () => endpoints(url, token));
    same(endpoints(url).length, 1);
  }
}
