/** Facts about a book: `GET /details/ID`. */
import type { Server } from "node:http";
import { createService, idIn, json, NOT_FOUND, serve } from "./service.ts";

export interface Details {
  readonly id: number;
  readonly author: string;
  readonly year: number;
  readonly type: string;
  readonly pages: number;
  readonly publisher: string;
  readonly language: string;
  readonly "ISBN-10": string;
  readonly "ISBN-13": string;
}

export function createDetails(): Server {
  return createService(({ url }) => {
    const id = idIn(url.pathname, "/details/");
    return id === undefined ? NOT_FOUND : json(detailsOf(id));
  });
}

function detailsOf(id: number): Details {
  return {
    id,
    author: "William Shakespeare",
    year: 1595,
    type: "paperback",
    pages: 200,
    publisher: "PublisherA",
    language: "English",
    "ISBN-10": "1234567890",
    "ISBN-13": "123-1234567890",
  };
}

if (import.meta.main) serve("details", createDetails());
