import assert from "node:assert/strict";
import { test } from "node:test";
import { QueueBudget } from "./queue-budget.ts";

test("QueueBudget is shared by all queues, and gets back what has left or belonged to a closed queue", () => {
  const budget = new QueueBudget(10);
  const [one, other] = [budget.share(), budget.share()];
  assert.ok(one.take(6));
  assert.ok(!other.take(5));
  assert.ok(other.take(4));
  one.give(2);
  assert.ok(other.take(2));
  assert.equal(budget.bytes, 10);
  other.close();
  other.close();
  other.give(6);
  assert.equal(budget.bytes, 4);
  assert.ok(!other.take(1), "closed");
});
