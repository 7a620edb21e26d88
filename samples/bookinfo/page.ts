/** The product page as HTML. */
import type { Details } from "./details.ts";
import type { Review, Reviews } from "./reviews.ts";

export const PRODUCT = {
  id: 0,
  title: "The Comedy of Errors",
  descriptionHtml:
    "One of William Shakespeare's early plays, and his shortest: two sets of twins, parted by a storm at sea, " +
    "meet again in Ephesus without knowing it, and a whole town loses track of who is who.",
};

export interface PageInput {
  /** Name of the pod that makes this page. */
  readonly podName: string;
  /** Empty when nobody is signed in. */
  readonly user: string;
  /** Undefined when the service did not answer. */
  readonly details: Details | undefined;
  readonly reviews: Reviews | undefined;
}

export function page(input: PageInput): string {
  const { user, details, reviews } = input;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${PRODUCT.title} - Bookinfo</title>
<link rel="stylesheet" href="/static/style.css">
</head>
<body>
<header class="bar">
<a class="brand" href="/productpage">Bookinfo</a>
${signIn(user)}
</header>
<main>
<section class="hero">
<div class="cover" aria-hidden="true"><span>The</span><strong>Comedy</strong><span>of</span><strong>Errors</strong><em>W. Shakespeare</em></div>
<div>
<h1>${PRODUCT.title}</h1>
<p class="summary">${PRODUCT.descriptionHtml}</p>
${detailsSection(details)}
</div>
</section>
${trail(input)}
${reviewsSection(reviews)}
</main>
</body>
</html>
`;
}

function signIn(user: string): string {
  if (user !== "")
    return `<p class="user">Signed in as <strong>${html(user)}</strong> <a href="/logout">sign out</a></p>`;
  return `<form class="user" method="post" action="/login">
<input name="username" placeholder="user name" aria-label="user name" maxlength="40" required>
<button>Sign in</button>
</form>`;
}

function detailsSection(details: Details | undefined): string {
  if (details === undefined) return sorry("Sorry, product details are currently unavailable for this book.");
  const facts: readonly (readonly [string, string | number])[] = [
    ["Author", details.author],
    ["Year", details.year],
    ["Type", details.type],
    ["Pages", details.pages],
    ["Publisher", details.publisher],
    ["Language", details.language],
    ["ISBN-10", details["ISBN-10"]],
    ["ISBN-13", details["ISBN-13"]],
  ];
  const rows = facts.map(([name, value]) => `<div><dt>${name}</dt><dd>${html(String(value))}</dd></div>`);
  return `<dl class="facts">${rows.join("")}</dl>`;
}

function reviewsSection(reviews: Reviews | undefined): string {
  if (reviews === undefined) {
    return `<section><h2>Reviews</h2>${sorry("Sorry, product reviews are currently unavailable for this book.")}</section>`;
  }
  return `<section>
<h2>Reviews</h2>
<div class="reviews">
${reviews.reviews.map(reviewCard).join("\n")}
</div>
</section>`;
}

interface Stop {
  readonly service: string;
  /** Version and pod that answered. */
  readonly who?: readonly [version: string, pod: string];
  readonly state: "answered" | "failed" | "not asked";
}

/** Who answered for this page: what routes, faults and policies change is seen here first. */
function trail({ podName, details, reviews }: PageInput): string {
  const ratings = reviews?.reviews.map(({ rating }) => rating).find((rating) => rating !== undefined);
  const stops: readonly Stop[] = [
    { service: "productpage", who: ["", podName], state: "answered" },
    { service: "details", state: details === undefined ? "failed" : "answered" },
    {
      service: "reviews",
      state: reviews === undefined ? "failed" : "answered",
      ...(reviews === undefined ? {} : { who: [reviews.version, reviews.podname] as const }),
    },
    {
      service: "ratings",
      state: ratings === undefined ? "not asked" : "error" in ratings ? "failed" : "answered",
    },
  ];
  return `<section class="trail" aria-label="who answered">
<h2>Who answered <a href="/productpage">reload</a></h2>
<ol>${stops.map(stop).join("")}</ol>
</section>`;
}

function stop({ service, who, state }: Stop): string {
  const [version = "", pod = ""] = who ?? [];
  const name = `<strong>${service}${version === "" ? "" : ` <b class="version ${/^v\d$/.test(version) ? version : ""}">${html(version)}</b>`}</strong>`;
  const below = pod === "" ? `<span>${state}</span>` : `<code>${html(pod)}</code>`;
  return `<li class="${state.replace(" ", "-")}">${name}${below}</li>`;
}

function reviewCard({ reviewer, text, rating }: Review): string {
  return `<article class="card">
<p>${html(text)}</p>
${rating === undefined ? "" : stars(rating)}
<footer>${html(reviewer)}</footer>
</article>`;
}

const MAX_STARS = 5;

function stars(rating: NonNullable<Review["rating"]>): string {
  if ("error" in rating) return sorry(rating.error);
  const full = Math.min(Math.max(Math.round(rating.stars), 0), MAX_STARS);
  const color = rating.color === "red" ? "red" : "black";
  const glyphs = `${"★".repeat(full)}<span>${"★".repeat(MAX_STARS - full)}</span>`;
  return `<p class="stars ${color}" title="${full} of ${MAX_STARS} stars">${glyphs}</p>`;
}

function sorry(sentence: string): string {
  return `<p class="sorry">${html(sentence)}</p>`;
}

function html(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

export const STYLE = `:root {
  color-scheme: light dark;
  --ink: light-dark(#1d2433, #e8eaf0); --soft: light-dark(#5b6579, #9aa5ba); --paper: light-dark(#f6f4ef, #14171f);
  --card: light-dark(#fff, #1d222d); --line: light-dark(#e3dfd5, #2c3342); --accent: light-dark(#1f5f8b, #7cc0ee);
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.6 Georgia, "Times New Roman", serif; }
.bar { display: flex; justify-content: space-between; align-items: center; gap: 1rem; padding: .6rem max(1rem, calc(50vw - 29rem));
  background: var(--card); border-bottom: 1px solid var(--line); font: 15px/1.4 system-ui, sans-serif; }
.brand { font-weight: 700; letter-spacing: .02em; color: var(--accent); text-decoration: none; }
.user { display: flex; gap: .5rem; align-items: center; margin: 0; }
.user a { color: var(--accent); }
input, button { font: inherit; padding: .3rem .6rem; border-radius: .4rem; border: 1px solid var(--line); background: var(--paper); color: inherit; }
button { background: var(--accent); color: var(--card); border-color: transparent; cursor: pointer; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
.hero { display: grid; grid-template-columns: 13rem 1fr; gap: 2.5rem; align-items: start; }
.cover { aspect-ratio: 2 / 3; padding: 1.2rem; border-radius: .3rem .7rem .7rem .3rem; color: #fbf3df; text-align: center;
  display: flex; flex-direction: column; justify-content: center; line-height: 1.25;
  background: linear-gradient(90deg, #0003 0 .5rem, transparent .5rem), linear-gradient(160deg, #8b2f3c, #4a1525); box-shadow: 0 12px 30px #0004; }
.cover strong { font-size: 1.7rem; font-weight: 600; } .cover em { margin-top: 2rem; font-size: .85rem; opacity: .85; }
h1 { margin: 0 0 .5rem; font-size: 2.2rem; line-height: 1.15; } h2 { margin: 3rem 0 1rem; font-size: 1.4rem; }
.summary { margin-top: 0; color: var(--soft); }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .6rem 1.5rem; margin: 1.5rem 0 0; font: 15px/1.4 system-ui, sans-serif; }
.facts div { border-top: 1px solid var(--line); padding-top: .4rem; } dt { color: var(--soft); font-size: .8rem; } dd { margin: 0; }
.reviews { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1.2rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; padding: 1.2rem 1.4rem; }
.card p { margin: 0 0 .6rem; } .card footer { color: var(--soft); font: 14px system-ui, sans-serif; }
.stars { font-size: 1.3rem; letter-spacing: .1em; } .stars span { opacity: .18; }
.stars.black { color: light-dark(#111, #fff); } .stars.red { color: #d02436; }
.sorry { padding: .8rem 1rem; border-radius: .5rem; border: 1px solid #c98a0066; background: #f5b70022; font: 15px/1.4 system-ui, sans-serif; }
.trail { font: 15px/1.4 system-ui, sans-serif; } .trail h2 { font-family: Georgia, "Times New Roman", serif; } .trail h2 a { margin-left: .6rem; font: 15px system-ui, sans-serif; color: var(--accent); }
.trail ol { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .8rem; margin: 0; padding: 0; list-style: none; }
.trail li { display: flex; flex-direction: column; gap: .2rem; padding: .7rem .9rem; border-radius: .6rem; background: var(--card); border: 1px solid var(--line); border-left: .3rem solid #2f9e62; overflow-wrap: anywhere; }
.trail li.failed { border-left-color: #d02436; } .trail li.not-asked { border-left-color: var(--line); opacity: .65; }
.trail span { color: var(--soft); font-size: .85rem; } .trail code { color: var(--soft); font-size: .85rem; }
.version { margin-left: .3rem; padding: .05rem .45rem; border-radius: 1rem; font-size: .85rem; background: var(--line); } .version.v2 { background: light-dark(#111, #fff); color: light-dark(#fff, #111); } .version.v3 { background: #d02436; color: #fff; }
@media (max-width: 40rem) { .hero { grid-template-columns: 1fr; } .cover { width: 11rem; } .bar { flex-wrap: wrap; } .user { flex: 1; } .user input { flex: 1; min-width: 6rem; } .trail ol, .facts { grid-template-columns: 1fr 1fr; } }
`;
