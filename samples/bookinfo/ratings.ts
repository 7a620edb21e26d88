/** Stars that reviewers gave: `GET /ratings/ID`. */
import type { Server } from "node:http";
import { createService, idIn, json, NOT_FOUND, serve } from "./service.ts";

export interface Ratings {
  readonly id: number;
  /** One to five stars by reviewer. */
  readonly ratings: Readonly<Record<string, number>>;
}

export function createRatings(): Server {
  return createService(({ url }) => {
    const id = idIn(url.pathname, "/ratings/");
    if (id === undefined) return NOT_FOUND;
    const answer: Ratings = { id, ratings: { Reviewer1: 5, Reviewer2: 4 } };
    return json(answer);
  });
}

if (import.meta.main) serve("ratings", createRatings());
