/** Says something over a WebSocket and prints the answer: `node client.ts URL WORD`. */
const [url = "ws://chat:8000/", word = "hello"] = process.argv.slice(2);
const socket = new WebSocket(url);
socket.addEventListener("open", () => socket.send(word));
socket.addEventListener("message", ({ data }) => {
  console.log(data);
  socket.close();
});
socket.addEventListener("error", () => {
  console.error(`cannot reach ${url}`);
  process.exitCode = 1;
});

export {};
