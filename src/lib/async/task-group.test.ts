import assert from "node:assert/strict";
import { test } from "node:test";
import { TaskGroup } from "./task-group.ts";

/** A task that ends when it is stopped. */
function untilStopped(log: string[], name: string): (signal: AbortSignal) => Promise<void> {
  return (signal) =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        log.push(`${name} stopped`);
        resolve();
      });
    });
}

test("leaving the scope of a TaskGroup stops its tasks and waits for them", async () => {
  const log: string[] = [];
  {
    await using tasks = new TaskGroup();
    tasks.start(untilStopped(log, "first"));
    tasks.start(untilStopped(log, "second"));
    log.push("left");
  }
  assert.deepEqual(log, ["left", "first stopped", "second stopped"]);
});

test("TaskGroup.until() rejects when a task fails, and gives the value otherwise", async () => {
  await using tasks = new TaskGroup();
  assert.equal(await tasks.until(Promise.resolve(7)), 7);
  tasks.start(() => Promise.reject(new Error("no disk")));
  await assert.rejects(tasks.until(new Promise<never>(() => undefined)), /no disk/);
});

test("a task that fails before anybody waits is no unhandled rejection", async () => {
  await using tasks = new TaskGroup();
  tasks.start(() => Promise.reject(new Error("no disk")));
  await new Promise(setImmediate);
  await assert.rejects(tasks.until(new Promise<never>(() => undefined)), /no disk/);
});

test("a TaskGroup stops with its parent, also with one that was aborted before", async () => {
  const parent = new AbortController();
  const log: string[] = [];
  await using tasks = new TaskGroup(parent.signal);
  tasks.start(untilStopped(log, "task"));
  parent.abort();
  assert.deepEqual(log, ["task stopped"]);
  await using late = new TaskGroup(parent.signal);
  assert.equal(late.signal.aborted, true);
});

test("TaskGroup.stop() also waits for a task that another one started while it stopped", async () => {
  const log: string[] = [];
  const tasks = new TaskGroup();
  tasks.start(async (signal) => {
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    tasks.start(async () => {
      await new Promise(setImmediate);
      log.push("cleaned up");
    });
  });
  await tasks.stop();
  assert.deepEqual(log, ["cleaned up"]);
});
