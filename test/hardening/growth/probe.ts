/**
 * Preloaded into a measured program: answers its parent with the CPU time used so far and with the longest turn of the event
 * loop since the last question, in CPU time, so that a busy machine does not matter.
 */
const TICK_MS = 5;

let longestMs = 0;
let before = process.threadCpuUsage();

setInterval(() => {
  // A turn that takes long delays this timer, so all of its CPU time lies between two calls.
  const { user, system } = process.threadCpuUsage(before);
  before = process.threadCpuUsage();
  longestMs = Math.max(longestMs, (user + system) / 1000);
}, TICK_MS).unref();

process.on("message", (question) => {
  if (question !== "measure") return;
  const { user, system } = process.cpuUsage();
  // The turn that has just ended counts, too.
  setTimeout(() => {
    process.send?.({ cpuMs: (user + system) / 1000, longestMs });
    longestMs = 0;
  }, 2 * TICK_MS);
});
process.channel?.unref();
