/**
 * The page of a book, put together from details and reviews.
 *
 *   /productpage       the page; `?u=NAME` shows it as that user would see it
 *   /login /logout     a cookie holds who is signed in; the other services get the name in the header `end-user`
 *   /api/v1/products   the same as JSON
 */
import type { IncomingHttpHeaders, Server } from "node:http";
import { hostname } from "node:os";
import type { Details } from "./details.ts";
import { PRODUCT, page, STYLE } from "./page.ts";
import type { Ratings } from "./ratings.ts";
import type { Reviews } from "./reviews.ts";
import { type Answer, type Call, createService, fetchJson, json, NOT_FOUND, propagated, serve } from "./service.ts";

export interface ProductpageOptions {
  readonly podName: string;
  readonly detailsUrl: string;
  readonly reviewsUrl: string;
  readonly ratingsUrl: string;
  /** How long one call to another service may take; reviews are asked twice. */
  readonly timeoutMs: number;
}

export function createProductpage(options: ProductpageOptions): Server {
  return createService((call) => {
    const { pathname } = call.url;
    if (pathname === "/" || pathname === "/index.html") return redirect("/productpage");
    if (pathname === "/productpage") return productpage(call, options);
    if (pathname === "/login") return login(call);
    if (pathname === "/logout") return redirect("/productpage", "user=; Max-Age=0");
    if (pathname === "/static/style.css") return text("text/css", STYLE);
    if (pathname.startsWith("/api/v1/products")) return api(call, options);
    return NOT_FOUND;
  });
}

async function productpage(call: Call, options: ProductpageOptions): Promise<Answer> {
  const user = userOf(call);
  const headers = headersFor(call, user);
  const [details, reviews] = await Promise.all([fetchDetails(options, headers), fetchReviews(options, headers)]);
  return text("text/html; charset=utf-8", page({ podName: options.podName, user, details, reviews }));
}

async function api(call: Call, options: ProductpageOptions): Promise<Answer> {
  const [, id, part] = /^\/api\/v1\/products(?:\/(\d+)(?:\/(\w+))?)?$/.exec(call.url.pathname) ?? [];
  if (call.url.pathname === "/api/v1/products") return json([PRODUCT]);
  if (id !== String(PRODUCT.id)) return NOT_FOUND;
  const headers = headersFor(call, userOf(call));
  switch (part) {
    case undefined:
      return orUnavailable(await fetchDetails(options, headers), "product details");
    case "reviews":
      return orUnavailable(await fetchReviews(options, headers), "product reviews");
    case "ratings":
      return orUnavailable(
        await fetchPart<Ratings>(`${options.ratingsUrl}/ratings/${id}`, headers, options),
        "product ratings",
      );
    default:
      return NOT_FOUND;
  }
}

type Headers = Readonly<Record<string, string>>;

function fetchDetails(options: ProductpageOptions, headers: Headers): Promise<Details | undefined> {
  return fetchPart(`${options.detailsUrl}/details/${PRODUCT.id}`, headers, options);
}

/** Twice, because a second try is cheap compared with a page without reviews. */
async function fetchReviews(options: ProductpageOptions, headers: Headers): Promise<Reviews | undefined> {
  const url = `${options.reviewsUrl}/reviews/${PRODUCT.id}`;
  return (await fetchPart<Reviews>(url, headers, options)) ?? fetchPart(url, headers, options);
}

function fetchPart<T>(url: string, headers: Headers, { timeoutMs }: ProductpageOptions): Promise<T | undefined> {
  return fetchJson<T>({ url, headers, timeoutMs });
}

function orUnavailable(value: unknown, what: string): Answer {
  return value === undefined
    ? json({ error: `Sorry, ${what} are currently unavailable for this book.` }, 503)
    : json(value);
}

const USER_NAME = /^[\w.@-]{1,40}$/;

function login({ method, form }: Call): Answer {
  const user = form.get("username") ?? "";
  if (method !== "POST" || !USER_NAME.test(user)) return redirect("/productpage");
  return redirect("/productpage", `user=${user}; Path=/; HttpOnly; SameSite=Lax`);
}

/** Whoever the address names, else who is signed in; empty for nobody. */
function userOf({ url, headers }: Call): string {
  const user = url.searchParams.get("u") ?? cookie(headers, "user");
  return USER_NAME.test(user) ? user : "";
}

function cookie(headers: IncomingHttpHeaders, name: string): string {
  const found = (headers.cookie ?? "").split(/; */).find((part) => part.startsWith(`${name}=`));
  return found?.slice(name.length + 1) ?? "";
}

/** Nobody but us says who is signed in: the header decides where requests go. */
function headersFor(call: Call, user: string): Headers {
  const { "end-user": _, ...rest } = propagated(call.headers);
  return user === "" ? rest : { ...rest, "end-user": user };
}

function redirect(location: string, setCookie?: string): Answer {
  return {
    status: 303,
    headers: { location, ...(setCookie === undefined ? {} : { "set-cookie": setCookie }) },
    body: "",
  };
}

function text(type: string, body: string): Answer {
  return { status: 200, headers: { "content-type": type }, body };
}

if (import.meta.main) {
  const {
    DETAILS_URL = "http://details:9080",
    REVIEWS_URL = "http://reviews:9080",
    RATINGS_URL = "http://ratings:9080",
    POD_NAME: podName = hostname(),
  } = process.env;
  const urls = { detailsUrl: DETAILS_URL, reviewsUrl: REVIEWS_URL, ratingsUrl: RATINGS_URL };
  serve("productpage", createProductpage({ ...urls, podName, timeoutMs: 3_000 }));
}
