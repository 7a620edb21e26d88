/** Reviews of a book: `GET /reviews/ID`. Version v1 shows no stars, v2 black ones, v3 red ones. */
import type { Server } from "node:http";
import { hostname } from "node:os";
import type { Ratings } from "./ratings.ts";
import { type Call, createService, fetchJson, idIn, json, NOT_FOUND, propagated, serve } from "./service.ts";

export interface Review {
  readonly reviewer: string;
  readonly text: string;
  readonly rating?: { readonly stars: number; readonly color: string } | { readonly error: string };
}

export interface Reviews {
  readonly id: number;
  readonly podname: string;
  readonly version: string;
  readonly reviews: readonly Review[];
}

export interface ReviewsOptions {
  readonly version: string;
  readonly podName: string;
  readonly ratingsUrl: string;
}

const STAR_COLORS: Readonly<Record<string, string>> = { v2: "black", v3: "red" };
/** Longer than the page waits for us: a slow ratings service takes the reviews down with it. */
const RATINGS_TIMEOUT_MS = 10_000;

const REVIEWS: readonly Review[] = [
  {
    reviewer: "Reviewer1",
    text: "Two pairs of twins, one town, a day of mistaken faces: it should not work, and it is a delight from the first mix-up to the last.",
  },
  {
    reviewer: "Reviewer2",
    text: "Light, quick and very funny. It has less to say than the later plays, but nobody in the theatre minded.",
  },
];

export function createReviews(options: ReviewsOptions): Server {
  return createService(async (call) => {
    const id = idIn(call.url.pathname, "/reviews/");
    if (id === undefined) return NOT_FOUND;
    const color = STAR_COLORS[options.version];
    const reviews =
      color === undefined ? REVIEWS : await withStars(call, { id, color, ratingsUrl: options.ratingsUrl });
    const answer: Reviews = { id, podname: options.podName, version: options.version, reviews };
    return json(answer);
  });
}

interface Stars {
  readonly id: number;
  readonly color: string;
  readonly ratingsUrl: string;
}

async function withStars(call: Call, { id, color, ratingsUrl }: Stars): Promise<readonly Review[]> {
  const url = `${ratingsUrl}/ratings/${id}`;
  const answer = await fetchJson<Ratings>({ url, headers: propagated(call.headers), timeoutMs: RATINGS_TIMEOUT_MS });
  return REVIEWS.map((review) => {
    const stars = answer?.ratings[review.reviewer];
    return {
      ...review,
      rating: stars === undefined ? { error: "Ratings are currently unavailable" } : { stars, color },
    };
  });
}

if (import.meta.main) {
  const { SERVICE_VERSION: version = "v1", POD_NAME: podName = hostname() } = process.env;
  const ratingsUrl = process.env.RATINGS_URL ?? "http://ratings:9080";
  serve(`reviews ${version}`, createReviews({ version, podName, ratingsUrl }));
}
